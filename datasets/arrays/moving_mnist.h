// Clips in one uint8 array on the disk, as Moving MNIST comes: [clips, frames, channels, height,
// width], with the digits that move in it, or any texts, as captions. The file is mapped, so it may
// be larger than the memory.
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
  // What a file without a header holds; a .npy says it itself: [clips, frames, height, width] or
  // [clips, frames, channels, height, width].
  std::int64_t clips = -1;  // -1: as many as fill the file
  std::int64_t frames = 10;
  PixelSize size = 64;
  int channels = 1;
  // At most one of these: uint8 [clips, digits_per_clip] whose caption is "3 7", or a UTF-8 file
  // with one text a line.
  std::filesystem::path digits{};
  int digits_per_clip = 2;  // of a file without a header
  std::filesystem::path texts{};
  bool rotate = false;  // by 0, 90, 180 or 270 degrees, by (seed, epoch, index)
  ClipLayout layout = ClipLayout::thwc;
  CaptionOptions captions{};
};

// Fields: video uint8 [frames, height, width, channels], or [channels, frames, height, width] for
// ClipLayout::cthw; with digits or texts caption text, and with a tokenizer tokens int64.
class MovingMnist : public Dataset {
 public:
  explicit MovingMnist(const std::filesystem::path& videos, MovingMnistOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;

  // The caption of a clip; empty where there is none.
  std::string caption(std::int64_t index) const;

 private:
  struct Files;
  MovingMnistOptions options_;
  std::shared_ptr<const Files> files_;
  Schema schema_;
};

}  // namespace millrace
