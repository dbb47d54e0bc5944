// The size of images and frames: 256 is a square, {480, 640} is height and width.
//
//   PixelSize square = 256;
//   PixelSize wide{480, 640};
#pragma once

#include <cstdint>

namespace millrace {

struct PixelSize {
  std::int64_t height = 0;
  std::int64_t width = 0;

  constexpr PixelSize() = default;
  constexpr PixelSize(std::int64_t side) : height(side), width(side) {}  // NOLINT: implicit
  constexpr PixelSize(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  constexpr bool is_own() const { return height == 0 && width == 0; }
  friend constexpr bool operator==(const PixelSize&, const PixelSize&) = default;
};

// Throws if one side is 0 and the other is not, or if a side is negative or above 65,536.
void check(const PixelSize& size, const char* who);

}  // namespace millrace
