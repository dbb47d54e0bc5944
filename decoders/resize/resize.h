// Resizes images exactly as Pillow does: antialiased, in fixed point, columns first, then rows.
// Only the pixels inside the crop are computed.
//
//   Array photo = Array::empty(DType::uint8, {768, 1024, 3});
//   Array small = Array::empty(DType::uint8, {256, 256, 3});
//   Status status = resize_image(photo, {.filter = Filter::bicubic}, small);
//   // The middle 256 columns of the photo at 341 x 256, flipped:
//   status = resize_image(photo, {.width = 341, .height = 256, .left = 42, .flip = true}, small);
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/array.h>

#include <cstdint>

namespace millrace {

enum class Filter : std::uint8_t { nearest, box, bilinear, bicubic, lanczos };

struct ResizeOptions {
  Filter filter = Filter::bilinear;
  // The size of the whole resized picture; 0: the size of the destination.
  std::int64_t width = 0;
  std::int64_t height = 0;
  // The position of the destination in it; with `flip`, in the picture before it is flipped.
  std::int64_t left = 0;
  std::int64_t top = 0;
  bool flip = false;  // flip the crop left to right
};

// Both are uint8 [height, width] or [height, width, channels] with the same 1, 3 or 4 channels. The
// fourth channel is alpha: colours are multiplied by it, as in Pillow's mode RGBA.
Status resize_image(const Array& source, const ResizeOptions& options, const Array& destination);

// Flips left to right. The destination has the shape of the source and must not be the source.
Status flip_image(const Array& source, const Array& destination);

// Rotates counter-clockwise by quarter turns, as numpy's rot90; the destination has the rotated
// shape.
Status rotate_image(const Array& source, int quarter_turns, const Array& destination);

}  // namespace millrace
