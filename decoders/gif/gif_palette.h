// Private: up to 256 colours that stand for all of a clip's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::detail {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

// Counts colours, then cuts the box with the largest error in two until there are 256, and lets the
// colours settle at the middle of what is nearest to them.
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

// The nearest of a palette's colours, looked up once for each small cube.
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
