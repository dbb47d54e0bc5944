// Private: writes the planes of single frames into the caller's clip, in its layout.
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/decoders/video/clip.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::detail {

// How a stored frame must be rotated to be upright: first transposed, then flipped.
struct Orientation {
  bool transpose = false;
  bool flip_x = false;
  bool flip_y = false;
  bool is_upright() const { return !transpose && !flip_x && !flip_y; }
};

struct Planes {
  const std::uint8_t* data[3] = {};  // red, green, blue; or grey
  std::ptrdiff_t stride[3] = {};
};

// The size of the frames of a clip.
struct FrameSize {
  int height = 0;
  int width = 0;
};

// The part of a stored frame that is kept.
struct CropBox {
  int x = 0, y = 0, width = 0, height = 0;
};
CropBox crop_for(Fit fit, FrameSize stored, FrameSize wanted);

// Checks that the options are valid and the result is within the limits; `size` is that of the
// resulting frames.
Status check_clip(const ClipOptions& options, const DecodeLimits& limits, FrameSize own,
                  std::size_t destination_bytes, FrameSize& size);

class ClipWriter {
 public:
  ClipWriter(const ClipOptions& options, FrameSize size, std::span<std::uint8_t> destination)
      : layout_(options.layout),
        frames_(static_cast<std::size_t>(options.frames.count)),
        channels_(static_cast<std::size_t>(options.channels)),
        height_(static_cast<std::size_t>(size.height)),
        width_(static_cast<std::size_t>(size.width)),
        to_(destination) {}

  FrameSize size() const { return {static_cast<int>(height_), static_cast<int>(width_)}; }
  // `planes` have the writer's size after rotation.
  void put(std::size_t slot, const Planes& planes, Orientation orientation);
  void copy(std::size_t from, std::size_t to);
  // Fills the frames after the first `valid` ones; returns false if the policy is error.
  bool fill_rest(std::size_t valid, ShortClip policy);

 private:
  std::uint8_t* row(std::size_t slot, std::size_t channel, std::size_t y) const;
  void put_turned(std::size_t slot, const Planes& planes, Orientation orientation);

  ClipLayout layout_;
  std::size_t frames_, channels_, height_, width_;
  std::span<std::uint8_t> to_;
};

}  // namespace millrace::detail
