#include "media_files.h"

#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/log.h>

#include <algorithm>

namespace millrace::detail {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

}  // namespace

FileList list_media(const std::filesystem::path& folder, FileListOptions options,
                    const std::vector<std::string>& extensions) {
  if (options.extensions.empty()) options.extensions = extensions;
  return FileList(folder, std::move(options));
}

void refuse_empty(const FileList& files, std::string_view what,
                  const std::vector<std::string>& extensions) {
  if (files.size() > 0) return;
  throw Error("there are no " + std::string(what) + " (" + joined(extensions) + ")")
      .at(printable(files.folder()))
      .stage("list")
      .kind(ErrorKind::usage)
      .hint("Give the folder that holds them; folders below it are searched too");
}

void log_left_out(std::string_view folder, const std::vector<LeftOut>& left_out) {
  constexpr std::size_t most_lines = 10;
  for (std::size_t i = 0; i < std::min(left_out.size(), most_lines); ++i) {
    log(LogLevel::warning, left_out[i].source + ": left out: " + left_out[i].reason);
  }
  if (left_out.size() > most_lines) {
    log(LogLevel::warning, std::string(folder) + ": " +
                               std::to_string(left_out.size() - most_lines) +
                               " more were left out; left_out() and the ledger list them");
  }
}

std::int64_t cost_of(const FileList& files, std::int64_t file) {
  return std::max<std::int64_t>(files.bytes(file), 0);
}

Status at_file(Status status, const std::filesystem::path& path) {
  if (status.ok()) return status;
  std::string shown = printable(path);
  Error& error = status.error();
  // A decoder's hint may contain the raw file name, which need not be UTF-8.
  if (error.hint().find(path.native()) != std::string::npos) {
    error.hint("Check the file with: inspect " + shown);
  }
  error.at(std::move(shown));
  return status;
}

std::int64_t covering_side(const ImageInfo& picture, const PixelSize& crop) {
  const std::int64_t w = std::max<std::int64_t>(picture.width, 1);
  const std::int64_t h = std::max<std::int64_t>(picture.height, 1);
  if (w <= h) return std::max(crop.width, (crop.height * w + h - 1) / h);
  return std::max(crop.height, (crop.width * h + w - 1) / w);
}

}  // namespace millrace::detail
