// Private: reads captions and pairs media files with text files of the same name.
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

// Adds the field "caption", and with a tokenizer "tokens".
void add_caption_fields(std::vector<Field>& fields, const CaptionOptions& options);
// Fills these fields.
Status set_caption(const CaptionOptions& options, std::string_view text, Sample& sample);
// Reads a UTF-8 file without the white space at its end. An empty file is an empty caption.
Status read_caption(const std::filesystem::path& path, std::int64_t max_bytes, std::string& text);

// Media files and text files of the same folder with the same name apart from the extension.
struct StemPairs {
  FileList media, texts;
  std::vector<std::int64_t> media_of, text_of;  // by sample; -1: no text
  std::vector<LeftOut> left_out;

  std::int64_t size() const { return static_cast<std::int64_t>(media_of.size()); }
  std::filesystem::path media_path(std::int64_t index) const {
    return media.path(media_of[static_cast<std::size_t>(index)]);
  }
  // Empty if the sample has no text.
  std::filesystem::path text_path(std::int64_t index) const {
    std::int64_t text = text_of[static_cast<std::size_t>(index)];
    return text < 0 ? std::filesystem::path() : texts.path(text);
  }
};

// Pairs in the order of the media. Texts without media are left out; media without a text are left
// out only with TextBeside::required.
StemPairs pair_by_stem(const std::filesystem::path& folder, FileListOptions options,
                       const std::vector<std::string>& media, TextBeside wanted);
// Throws an Error with the numbers of media and texts if there are no pairs.
void refuse_no_pairs(const StemPairs& pairs, const std::filesystem::path& folder);
// Reads the caption of a sample (empty if it has no text) and fills its fields.
Status load_caption(const StemPairs& pairs, std::int64_t index, const CaptionOptions& options,
                    Sample& sample);

}  // namespace millrace::detail
