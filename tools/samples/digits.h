// Digits that we draw ourselves, each time a little differently, as hands do: clips of them that
// move and bounce, with a text that tells what happens. For trying a trainer with nothing
// downloaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct DigitClipOptions {
  std::int64_t frames = 10;
  std::int64_t size = 64;  // of a frame's sides
  int digits = 1;          // 1 or 2 of them
  // How much clips of one caption differ, in where they begin, how fast they are and how they are
  // written; 0: not at all.
  double spread = 1;
  std::uint64_t seed = 42;
};

struct DigitClip {
  std::vector<std::uint8_t> pixels;  // [frames, size, size]
  std::vector<std::uint8_t> digits;
  std::string caption;  // "the digit 7 moves right"
};

// The index-th of endlessly many.
DigitClip draw_digit_clip(std::int64_t index, const DigitClipOptions& options);

}  // namespace millrace
