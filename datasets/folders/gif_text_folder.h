// GIFs with captions: a.gif and a.txt. A GIF without a text, or a text without a GIF, is listed in
// left_out() and logged.
//
//   GifTextFolder gifs("gifs", {.frames = 10, .size = 64});
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/datasets/listing/file_list.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

namespace detail {
class ClipLoader;
struct StemPairs;
}  // namespace detail

struct GifTextFolderOptions {
  std::int64_t frames = 10;  // 0: all frames
  PixelSize size = 64;       // 0: each GIF's own size
  FrameChoice choice = FrameChoice::first;
  std::int64_t stride = 1;
  double fps = 0;
  Fit fit = Fit::centre_crop;
  int channels = 1;  // 1: grey, 3: RGB
  ClipLayout layout = ClipLayout::thwc;
  ShortClip short_clip = ShortClip::repeat_last;
  CaptionOptions captions{};
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions` is ignored
};

// Fields: those of VideoFolder, caption (text), and with a tokenizer tokens (int64).
class GifTextFolder : public Dataset {
 public:
  explicit GifTextFolder(const std::filesystem::path& folder, GifTextFolderOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override;
  // The size of the file in bytes.
  std::int64_t cost(std::int64_t index, std::int64_t epoch = 0) const override;

  // The GIF and the text of a sample.
  std::filesystem::path path(std::int64_t index) const;
  std::filesystem::path text_path(std::int64_t index) const;

 private:
  CaptionOptions captions_;
  Schema schema_;
  std::shared_ptr<const detail::StemPairs> pairs_;
  std::shared_ptr<detail::ClipLoader> loader_;
};

}  // namespace millrace
