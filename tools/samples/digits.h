// Draws clips of handwritten-looking digits that move and bounce, with a caption each: data to try
// a trainer without a download.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct DigitClipOptions {
  std::int64_t frames = 10;
  std::int64_t size = 64;  // height and width of a frame
  int digits = 1;          // 1 or 2
  // Variation among clips of one caption in position, speed and handwriting, 0 to 1.
  double spread = 1;
  std::uint64_t seed = 42;
};

struct DigitClip {
  std::vector<std::uint8_t> pixels;  // [frames, size, size]
  std::vector<std::uint8_t> digits;
  std::string caption;  // "the digit 7 moves right"
};

// Draws clip number `index`; every index gives another clip.
DigitClip draw_digit_clip(std::int64_t index, const DigitClipOptions& options);

}  // namespace millrace
