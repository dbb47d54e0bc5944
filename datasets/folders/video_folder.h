// The videos of a folder as clips with the same number of frames and the same size, decoded
// straight into the batch.
//
//   VideoFolder clips("clips", {.frames = 17, .size = {128, 128}});
//
// Frames are chosen by their presentation times. `short_clip` says how a video with too few frames
// is extended; "valid_frames" is the number of its own frames. A random window depends on (seed,
// epoch, index).
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

namespace detail {
class ClipLoader;
}

enum class FrameChoice {
  first,          // every `stride`-th frame from the start
  random_window,  // every `stride`-th frame from a random start
  uniform,        // evenly spaced over the whole video
  at_fps,         // the frame shown at every multiple of 1/fps seconds
};

struct VideoFolderOptions {
  std::int64_t frames = 17;  // 0: all frames; only with FrameChoice::first
  PixelSize size = 128;      // 0: each video's own size
  FrameChoice choice = FrameChoice::first;
  std::int64_t stride = 1;
  double fps = 0;  // for FrameChoice::at_fps
  Fit fit = Fit::centre_crop;
  int channels = 3;  // 3: RGB, 1: grey
  ClipLayout layout = ClipLayout::thwc;
  ShortClip short_clip = ShortClip::repeat_last;
  bool pictures = false;  // also read images, as clips of one frame
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions` replaces extensions() unless it is empty
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
  // The size of the file in bytes.
  std::int64_t cost(std::int64_t index, std::int64_t epoch = 0) const override;

  const FileList& files() const { return files_; }
  const VideoFolderOptions& options() const { return options_; }
  static const std::vector<std::string>& extensions();

 private:
  VideoFolderOptions options_;
  FileList files_;
  Schema schema_;
  std::shared_ptr<detail::ClipLoader> loader_;
};

}  // namespace millrace
