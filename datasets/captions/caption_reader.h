// Private: texts beside media, for every data set that has them.
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// Adds "caption", and with a tokenizer "tokens".
void add_caption_fields(std::vector<Field>& fields, const CaptionOptions& options);
// Fills them.
Status set_caption(const CaptionOptions& options, std::string_view text, Sample& sample);
// A UTF-8 file; an empty one is an empty caption. White space at the end goes.
Status read_caption(const std::filesystem::path& path, std::int64_t max_bytes, std::string& text);

// Files of one folder that differ only in what follows the last dot.
struct StemPairs {
  FileList media, texts;
  std::vector<std::int64_t> media_of, text_of;  // by sample; -1: no text
  std::vector<LeftOut> left_out;

  std::int64_t size() const { return static_cast<std::int64_t>(media_of.size()); }
  std::filesystem::path media_path(std::int64_t index) const {
    return media.path(media_of[static_cast<std::size_t>(index)]);
  }
  // Empty: there is none.
  std::filesystem::path text_path(std::int64_t index) const {
    std::int64_t text = text_of[static_cast<std::size_t>(index)];
    return text < 0 ? std::filesystem::path() : texts.path(text);
  }
};

// In the order of the media. What has no pair is left out, media only if `wanted` says so.
StemPairs pair_by_stem(const std::filesystem::path& folder, FileListOptions options,
                       const std::vector<std::string>& media, TextBeside wanted);
// Throws an error with the numbers of media and texts that were found.
void refuse_no_pairs(const StemPairs& pairs, const std::filesystem::path& folder);
// Reads the text of a sample, or takes an empty one, and fills its fields.
Status load_caption(const StemPairs& pairs, std::int64_t index, const CaptionOptions& options,
                    Sample& sample);

}  // namespace millrace
