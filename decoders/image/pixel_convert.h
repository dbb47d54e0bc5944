// Private: converts decoded pixels: channels, alpha and orientation, with Pillow's arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::detail {

// a * b / 255, rounded to the nearest.
constexpr std::uint8_t multiply_255(int a, int b) {
  int product = a * b + 128;
  return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

// Pillow's convert("L"): ITU-R 601 in 16 fractional bits.
constexpr std::uint8_t luma(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// RGBA rows to colours multiplied by alpha and back, as Pillow's modes "RGBa" and "RGBA".
void premultiply(std::uint8_t* row, std::int64_t pixels);
void unpremultiply(std::uint8_t* row, std::int64_t pixels);

struct ChannelRule {
  int from = 3;            // 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA
  int to = 3;              // 1, 3 or 4
  bool composite = false;  // blend with `background`; else alpha is dropped, or kept if to == 4
  std::uint8_t background[3] = {255, 255, 255};
};
void convert_row(const ChannelRule& rule, const std::uint8_t* from, std::int64_t pixels,
                 std::uint8_t* to);

// Applies the EXIF orientation (1 to 8); `to` is dense.
void orient_pixels(int orientation, const std::uint8_t* from, std::size_t stride,
                   std::int64_t width, std::int64_t height, int channels, std::uint8_t* to);

}  // namespace millrace::detail
