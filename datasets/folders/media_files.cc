#include "media_files.h"

#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/log.h>

#include <algorithm>

namespace millrace {

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

Status at_file(Status status, const std::filesystem::path& path) {
  if (status.ok()) return status;
  std::string shown = printable(path);
  Error& error = status.error();
  // A decoder's hint may have the name as it is on the disk.
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

void check(const PixelSize& size, const char* who) {
  auto fits = [](std::int64_t side) { return side > 0 && side <= 65'536; };
  if (size.is_own() || (fits(size.height) && fits(size.width))) return;
  throw Error(std::string(who) + ": size must be 0 or from 1 to 65536, but is " +
              std::to_string(size.height) + " x " + std::to_string(size.width))
      .kind(ErrorKind::usage);
}

}  // namespace millrace
