// Clips in one uint8 array file, as in Moving MNIST: [clips, frames, channels, height, width]. The
// captions are the digits in each clip, or any texts. The file is mapped, so it may be larger than
// the memory.
//
//   MovingMnist clips("moving.npy", {.digits = "digits.npy", .rotate = true});
//   MovingMnist raw("moving.bin", {.frames = 10, .size = 64, .texts = "captions.txt"});
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/decoders/video/clip.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace millrace {

struct MovingMnistOptions {
  // The shape of a file without a header. A .npy file has its own: [clips, frames, height, width]
  // or [clips, frames, channels, height, width].
  std::int64_t clips = -1;  // -1: computed from the size of the file
  std::int64_t frames = 10;
  PixelSize size = 64;
  int channels = 1;
  // Captions come from at most one file: `digits`, uint8 [clips, digits_per_clip], gives captions
  // like "3 7"; `texts` is UTF-8 with one caption per line.
  std::filesystem::path digits{};
  int digits_per_clip = 2;  // for a digits file without a header
  std::filesystem::path texts{};
  bool rotate = false;  // randomly by 0, 90, 180 or 270 degrees
  ClipLayout layout = ClipLayout::thwc;
  CaptionOptions captions{};
};

// Fields: video uint8 [frames, height, width, channels], or [channels, frames, height, width] for
// ClipLayout::cthw; with digits or texts also caption (text), and with a tokenizer tokens (int64).
class MovingMnist : public Dataset {
 public:
  explicit MovingMnist(const std::filesystem::path& videos, MovingMnistOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;

  // The caption of a clip; empty if it has none.
  std::string caption(std::int64_t index) const;

 private:
  struct Files;
  MovingMnistOptions options_;
  std::shared_ptr<const Files> files_;
  Schema schema_;
};

}  // namespace millrace
