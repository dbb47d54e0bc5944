#include "caption_reader.h"

#include <millrace/datasets/folders/media_files.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/text/text.h>

#include <algorithm>
#include <tuple>

namespace millrace::detail {

void add_caption_fields(std::vector<Field>& fields, const CaptionOptions& options) {
  fields.push_back(text_field("caption", options.max_bytes));
  if (!options.tokenizer) return;
  if (options.max_tokens < 1 || options.max_tokens > (1 << 24)) {
    throw Error("max_tokens must be at least 1, but is " + std::to_string(options.max_tokens))
        .kind(ErrorKind::usage);
  }
  fields.push_back({.name = "tokens",
                    .dtype = DType::int64,
                    .shape = {options.pad ? options.max_tokens : -1},
                    .max_elements = options.max_tokens});
}

Status set_caption(const CaptionOptions& options, std::string_view text, Sample& sample) {
  sample.set_text("caption", text);
  if (!options.tokenizer) return {};
  thread_local std::vector<std::int32_t> ids;
  if (Status status = options.tokenizer->encode(text, ids); !status.ok()) return status;
  const auto most = static_cast<std::size_t>(options.max_tokens);
  if (ids.size() > most && !options.truncate) {
    return Error("the caption has " + std::to_string(ids.size()) +
                 " tokens, more than max_tokens (" + std::to_string(options.max_tokens) + ")")
        .stage("text");
  }
  ids.resize(std::min(ids.size(), most));
  if (options.pad) ids.resize(most, options.pad_id);
  const Array& tokens = sample.resize("tokens", {static_cast<std::int64_t>(ids.size())});
  std::ranges::copy(ids, tokens.as<std::int64_t>().begin());
  return {};
}

Status read_caption(const std::filesystem::path& path, std::int64_t max_bytes, std::string& text) {
  FileBytes& file = FileBytes::of_this_thread();
  text.clear();
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error) &&
      std::filesystem::file_size(path, error) == 0) {
    return {};
  }
  if (Status status = file.read(path, max_bytes); !status.ok()) return status;
  if (Status status = decode_text(file.bytes(), text); !status.ok()) {
    return at_file(std::move(status), path);
  }
  text.erase(text.find_last_not_of(" \t\n\v\f\r") + 1);
  return {};
}

StemPairs pair_by_stem(const std::filesystem::path& folder, FileListOptions options,
                       const std::vector<std::string>& media, TextBeside wanted) {
  const std::vector<std::string> text_extensions = {"txt"};
  options.extensions = media;
  if (wanted != TextBeside::none) options.extensions.push_back("txt");
  FileList all(folder, options);
  StemPairs pairs{all.only(media), all.only(text_extensions), {}, {}, all.left_out()};
  auto key = [](const FileList& files, std::int64_t i) {
    return std::tuple(files.folder_index(i), stem_of(files.name(i)));
  };
  std::vector<std::int64_t> by_stem(static_cast<std::size_t>(pairs.texts.size()));
  for (std::size_t i = 0; i < by_stem.size(); ++i) by_stem[i] = static_cast<std::int64_t>(i);
  std::ranges::stable_sort(by_stem, {}, [&](std::int64_t i) { return key(pairs.texts, i); });
  std::vector<bool> used(by_stem.size());
  auto leave_out = [&](const FileList& files, std::int64_t i, const char* reason) {
    pairs.left_out.push_back({printable(files.path(i)), reason});
  };
  for (std::int64_t i = 0; i < pairs.media.size(); ++i) {
    auto found = std::ranges::lower_bound(by_stem, key(pairs.media, i), {}, [&](std::int64_t text) {
      return key(pairs.texts, text);
    });
    bool paired = found != by_stem.end() && key(pairs.texts, *found) == key(pairs.media, i);
    if (paired) used[static_cast<std::size_t>(*found)] = true;
    if (!paired && wanted == TextBeside::required) {
      leave_out(pairs.media, i, "there is no text of the same name (.txt) beside it");
      continue;
    }
    pairs.media_of.push_back(i);
    pairs.text_of.push_back(paired ? *found : -1);
  }
  for (std::int64_t i = 0; i < pairs.texts.size(); ++i) {
    if (!used[static_cast<std::size_t>(i)]) {
      leave_out(pairs.texts, i, "a text without a file of the same name beside it");
    }
  }
  log_left_out(printable(folder), pairs.left_out);
  return pairs;
}

void refuse_no_pairs(const StemPairs& pairs, const std::filesystem::path& folder) {
  if (pairs.size() > 0) return;
  throw Error("there is no file with a text of the same name (.txt) beside it; " +
              std::to_string(pairs.media.size()) + " files and " +
              std::to_string(pairs.texts.size()) + " texts were found")
      .at(printable(folder))
      .stage("list")
      .kind(ErrorKind::usage);
}

Status load_caption(const StemPairs& pairs, std::int64_t index, const CaptionOptions& options,
                    Sample& sample) {
  thread_local std::string text;
  text.clear();
  const std::filesystem::path path = pairs.text_path(index);
  if (!path.empty()) {
    if (Status status = read_caption(path, options.max_bytes, text); !status.ok()) return status;
  }
  return at_file(set_caption(options, text, sample), path);
}

}  // namespace millrace::detail
