// Private: chooses a palette of up to 256 colours for a clip.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::detail {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

// Counts colours, splits the box of colours with the largest error until there are 256 boxes, then
// improves their means by k-means.
class PaletteMaker {
 public:
  PaletteMaker() : bins_(bin_count) {}
  void add(Colour colour);
  std::vector<Colour> make();

  struct Bin {
    double count = 0;
    std::array<double, 3> sum{};  // its mean, once all are counted
  };

 private:
  static constexpr std::size_t bin_count = std::size_t{1} << 18;
  std::vector<Bin> bins_;
};

// Finds the nearest colour of a palette; caches the answer for each small cube of colours.
class NearestColour {
 public:
  explicit NearestColour(std::vector<Colour> palette)
      : palette_(std::move(palette)), known_(std::size_t{1} << 18, -1) {}
  std::uint8_t find(int red, int green, int blue);
  const std::vector<Colour>& palette() const { return palette_; }

 private:
  std::vector<Colour> palette_;
  std::vector<std::int16_t> known_;
};

}  // namespace millrace::detail
