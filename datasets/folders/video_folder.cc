#include "clip_loader.h"
#include "media_files.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/datasets/listing/printable.h>

namespace millrace {

using namespace detail;

namespace {

std::vector<std::string> wanted(const VideoFolderOptions& options) {
  if (!options.files.extensions.empty()) return options.files.extensions;
  std::vector<std::string> all = VideoFolder::extensions();
  if (options.pictures) {
    all.insert(all.end(), ImageFolder::extensions().begin(), ImageFolder::extensions().end());
  }
  return all;
}

}  // namespace

const std::vector<std::string>& VideoFolder::extensions() {
  static const std::vector<std::string> known = {"mp4", "mov", "avi", "mkv", "webm", "gif"};
  return known;
}

VideoFolder::VideoFolder(const std::filesystem::path& folder, VideoFolderOptions options)
    : options_(std::move(options)),
      files_(list_media(folder, options_.files, wanted(options_))),
      loader_(std::make_shared<ClipLoader>(options_, "VideoFolder")) {
  log_left_out(printable(folder), files_.left_out());
  refuse_empty(files_, "clips", wanted(options_));
  std::vector<Field> fields;
  loader_->add_fields(fields);
  schema_ = Schema(std::move(fields));
}

Status VideoFolder::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  return loader_->load(files_.path(index), context, sample);
}

std::int64_t VideoFolder::cost(std::int64_t index, std::int64_t /*epoch*/) const {
  return cost_of(files_, index);
}

std::string VideoFolder::describe(std::int64_t index) const {
  return printable(files_.path(index));
}

}  // namespace millrace
