// The transform that image models are trained with, from the bytes of a file straight into a row
// of the batch: RGB, shorter side to `size`, random mirror, centre crop. It equals torchvision's
// Resize, RandomHorizontalFlip and CenterCrop over Pillow, but computes only the pixels it keeps
// and never holds the whole picture where the format can be read in rows.
//
//   bool mirror = context.random("flip").uniform() < 0.5;
//   return transform_image(bytes, {.size = 256, .flip = mirror}, sample.out("image"));
#pragma once

#include <millrace/decoders/image/image.h>
#include <millrace/decoders/resize/resize.h>

namespace millrace {

enum class Layout : std::uint8_t { chw, hwc };

struct TransformOptions {
  std::int64_t size = 0;  // of the shorter side; 0: the destination's shorter side
  Filter filter = Filter::bilinear;
  bool flip = false;  // drawn by the caller
  Layout layout = Layout::chw;
  // Decode a JPEG at the smallest eighth of its size that is at least twice the target. Faster for
  // large photos; the pixels are no longer those of Pillow.
  bool fast = false;
  // Channels, alpha and limits. Not `strict` about what the crop leaves out: rows below it are
  // never looked at.
  ImageOptions image{};
};

// `destination` is uint8, or float32 in [0, 1], of shape [channels, height, width] or [height,
// width, channels]; its height and width are the crop.
Status transform_image(std::span<const std::byte> bytes, const TransformOptions& options,
                       const Array& destination, ImageResult* result = nullptr);

}  // namespace millrace
