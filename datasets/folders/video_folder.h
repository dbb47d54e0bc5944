// The clips of a folder as blocks of frames of one size, straight into the batch.
//
//   VideoFolder clips("clips", {.frames = 17, .size = {128, 128}});
//   auto [train, valid] = random_split(clips, {.valid_fraction = 0.05, .seed = 42});
//
// Frames are chosen by when they are shown. A clip that is too short is filled up by rule, and
// "valid_frames" says how many frames are its own. A random window depends on (seed, epoch, index).
#pragma once

#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/limits.h>
#include <millrace/decoders/video/clip.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

enum class FrameChoice {
  first,          // from the start, every `stride`-th
  random_window,  // the same from a random start
  uniform,        // spread over the whole clip
  at_fps,         // what is on the screen every 1/fps seconds
};

struct VideoFolderOptions {
  std::int64_t frames = 17;  // 0: all of them, however many; only with FrameChoice::first
  PixelSize size = 128;      // 0: each clip as large as it is
  FrameChoice choice = FrameChoice::first;
  std::int64_t stride = 1;
  double fps = 0;  // for FrameChoice::at_fps
  Fit fit = Fit::centre_crop;
  int channels = 3;  // 3: RGB, 1: grey
  ClipLayout layout = ClipLayout::thwc;
  ShortClip short_clip = ShortClip::repeat_last;
  bool pictures = false;  // pictures in the folder are clips of one frame
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions`, if any, instead of ours
};

// Fields: video uint8 [frames, height, width, channels], or [channels, frames, height, width] for
// ClipLayout::cthw; valid_frames int64 [].
class VideoFolder : public Dataset {
 public:
  explicit VideoFolder(const std::filesystem::path& folder, VideoFolderOptions options = {});

  std::int64_t size() const override { return files_.size(); }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override { return files_.left_out(); }

  const FileList& files() const { return files_; }
  const VideoFolderOptions& options() const { return options_; }
  static const std::vector<std::string>& extensions();

 private:
  VideoFolderOptions options_;
  FileList files_;
  Schema schema_;
  std::shared_ptr<class ClipLoader> loader_;
};

}  // namespace millrace
