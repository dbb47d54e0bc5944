// GIFs with a caption beside each: a.gif and a.txt. What has no pair is in left_out() and in the
// log, never dropped in silence.
//
//   GifTextFolder gifs("gifs", {.frames = 10, .size = 64});
//   Loader loader(gifs, {.batch_size = 4});
//   for (const Batch& batch : loader) train(batch["video"], batch.texts("caption"));
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

struct GifTextFolderOptions {
  std::int64_t frames = 10;  // 0: all of them, however many
  PixelSize size = 64;       // 0: each as large as it is
  FrameChoice choice = FrameChoice::first;
  std::int64_t stride = 1;
  double fps = 0;
  Fit fit = Fit::centre_crop;
  int channels = 1;  // 1: grey, 3: RGB
  ClipLayout layout = ClipLayout::thwc;
  ShortClip short_clip = ShortClip::repeat_last;
  CaptionOptions captions{};
  DecodeLimits limits{};
  FileListOptions files{};  // its extensions are not used
};

// Fields: those of VideoFolder, caption text, and with a tokenizer tokens int64.
class GifTextFolder : public Dataset {
 public:
  explicit GifTextFolder(const std::filesystem::path& folder, GifTextFolderOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override;

  // The GIF and the text of a sample.
  std::filesystem::path path(std::int64_t index) const;
  std::filesystem::path text_path(std::int64_t index) const;

 private:
  CaptionOptions captions_;
  Schema schema_;
  std::shared_ptr<const struct StemPairs> pairs_;
  std::shared_ptr<class ClipLoader> loader_;
};

}  // namespace millrace
