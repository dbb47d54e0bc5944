#include "clip_loader.h"

#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/listing/printable.h>

namespace millrace {

using namespace detail;

namespace {

VideoFolderOptions clip_options(const GifTextFolderOptions& options) {
  return {.frames = options.frames,
          .size = options.size,
          .choice = options.choice,
          .stride = options.stride,
          .fps = options.fps,
          .fit = options.fit,
          .channels = options.channels,
          .layout = options.layout,
          .short_clip = options.short_clip,
          .limits = options.limits};
}

}  // namespace

GifTextFolder::GifTextFolder(const std::filesystem::path& folder, GifTextFolderOptions options)
    : captions_(options.captions),
      pairs_(std::make_shared<const StemPairs>(
          pair_by_stem(folder, options.files, {"gif"}, TextBeside::required))),
      loader_(std::make_shared<ClipLoader>(clip_options(options), "GifTextFolder")) {
  refuse_empty(pairs_->media, "GIFs", {"gif"});
  refuse_no_pairs(*pairs_, folder);
  std::vector<Field> fields;
  loader_->add_fields(fields);
  add_caption_fields(fields, captions_);
  schema_ = Schema(std::move(fields));
}

std::int64_t GifTextFolder::size() const {
  return pairs_->size();
}

Status GifTextFolder::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  if (Status status = load_caption(*pairs_, index, captions_, sample); !status.ok()) return status;
  return loader_->load(path(index), context, sample);
}

std::string GifTextFolder::describe(std::int64_t index) const {
  return printable(path(index));
}
std::vector<LeftOut> GifTextFolder::left_out() const {
  return pairs_->left_out;
}
std::int64_t GifTextFolder::cost(std::int64_t index, std::int64_t /*epoch*/) const {
  return cost_of(pairs_->media, pairs_->media_of[static_cast<std::size_t>(index)]);
}
std::filesystem::path GifTextFolder::path(std::int64_t index) const {
  return pairs_->media_path(index);
}
std::filesystem::path GifTextFolder::text_path(std::int64_t index) const {
  return pairs_->text_path(index);
}

}  // namespace millrace
