// Decodes an image file and applies the usual training transform, directly into a row of the batch:
// RGB, shorter side to `size`, horizontal flip, centre crop. The result equals torchvision's
// Resize, RandomHorizontalFlip and CenterCrop over Pillow. Only the pixels inside the crop are
// computed, and formats that can be read in rows never need the whole picture in memory.
//
//   Array image = Array::empty(DType::uint8, {3, 256, 256});
//   Status status = transform_image(bytes, {.size = 256, .flip = true}, image);
#pragma once

#include <millrace/decoders/image/image.h>
#include <millrace/decoders/resize/resize.h>

namespace millrace {

enum class Layout : std::uint8_t { chw, hwc };

struct TransformOptions {
  std::int64_t size = 0;  // of the shorter side; 0: the shorter side of the destination
  Filter filter = Filter::bilinear;
  bool flip = false;  // the caller makes the random choice
  Layout layout = Layout::chw;
  // Decode a JPEG at the smallest n/8 of its size that is at least twice the target. Faster for
  // large photos, but the pixels differ from Pillow's.
  bool fast = false;
  // Channels, alpha and limits. Damage in rows below the crop is not found, since they are not
  // read.
  ImageOptions image{};
};

// `destination` is uint8, or float32 in [0, 1], of shape [channels, height, width] or [height,
// width, channels]; its height and width are the crop.
Status transform_image(std::span<const std::byte> bytes, const TransformOptions& options,
                       const Array& destination, ImageResult* result = nullptr);

}  // namespace millrace
