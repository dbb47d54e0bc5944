// Resizing, exactly as Pillow does it: antialiased, in fixed point, columns first and then rows.
// Only the pixels that the crop keeps are computed.
//
//   Array small = Array::empty(DType::uint8, {256, 256, 3});
//   Status status = resize_image(photo, {.filter = Filter::bicubic}, small);
//   // The middle 256 columns of photo at 341 x 256, mirrored:
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
  // Where the destination lies in it. With `flip`, in the picture before it is mirrored.
  std::int64_t left = 0;
  std::int64_t top = 0;
  bool flip = false;  // mirrors what is kept, left to right
};

// Both are uint8 [height, width] or [height, width, channels] with the same 1, 3 or 4 channels.
// The fourth channel is alpha: colours are weighted by it, as in Pillow's mode RGBA.
Status resize_image(const Array& source, const ResizeOptions& options, const Array& destination);

// Mirrors left to right. The destination has the source's shape, and is not the source.
Status flip_image(const Array& source, const Array& destination);

// Turns counter-clockwise by quarter turns, as numpy's rot90; the destination has the turned shape.
Status rotate_image(const Array& source, int quarter_turns, const Array& destination);

}  // namespace millrace
