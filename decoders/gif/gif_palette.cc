#include "gif_palette.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace millrace::detail {
namespace {

using Bin = PaletteMaker::Bin;
using Mean = std::array<double, 3>;

std::size_t cube(int red, int green, int blue) {
  return static_cast<std::size_t>(red >> 2 << 12 | green >> 2 << 6 | blue >> 2);
}

struct Box {
  std::span<Bin> bins;
  Mean mean{}, error{};  // error: the sum of squared distances along each axis
  double count = 0;

  explicit Box(std::span<Bin> members) : bins(members) {
    for (const Bin& bin : bins) {
      count += bin.count;
      for (std::size_t c = 0; c < 3; ++c) mean[c] += bin.count * bin.sum[c];
    }
    for (double& value : mean) value /= count;
    for (const Bin& bin : bins) {
      for (std::size_t c = 0; c < 3; ++c) {
        error[c] += bin.count * (bin.sum[c] - mean[c]) * (bin.sum[c] - mean[c]);
      }
    }
  }
  double total_error() const { return bins.size() < 2 ? 0 : error[0] + error[1] + error[2]; }
};

std::vector<Mean> cut(std::vector<Bin>& bins) {
  std::vector<Box> boxes{Box(bins)};
  while (boxes.size() < 256) {
    auto worst = std::ranges::max_element(boxes, {}, &Box::total_error);
    if (worst->total_error() <= 0) break;
    const auto axis =
        static_cast<std::size_t>(std::ranges::max_element(worst->error) - worst->error.begin());
    const double middle = worst->mean[axis];
    auto rest = std::partition(worst->bins.begin(), worst->bins.end(),
                               [&](const Bin& bin) { return bin.sum[axis] < middle; });
    const auto cut_at = static_cast<std::size_t>(rest - worst->bins.begin());
    const std::span<Bin> lower = worst->bins.first(cut_at), upper = worst->bins.subspan(cut_at);
    if (upper.empty() || lower.empty()) break;
    *worst = Box(lower);
    boxes.emplace_back(upper);
  }
  std::vector<Mean> means;
  means.reserve(boxes.size());
  for (const Box& box : boxes) means.push_back(box.mean);
  return means;
}

void settle(const std::vector<Bin>& bins, std::vector<Mean>& means) {
  std::vector<Bin> sums(means.size());
  for (const Bin& bin : bins) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double r = bin.sum[0] - means[i][0], g = bin.sum[1] - means[i][1],
                   b = bin.sum[2] - means[i][2];
      const double distance = r * r + g * g + b * b;
      if (distance < least) least = distance, best = i;
    }
    sums[best].count += bin.count;
    for (std::size_t c = 0; c < 3; ++c) sums[best].sum[c] += bin.count * bin.sum[c];
  }
  for (std::size_t i = 0; i < means.size(); ++i) {
    for (std::size_t c = 0; c < 3 && sums[i].count > 0; ++c) {
      means[i][c] = sums[i].sum[c] / sums[i].count;
    }
  }
}

}  // namespace

void PaletteMaker::add(Colour colour) {
  Bin& bin = bins_[cube(colour.red, colour.green, colour.blue)];
  bin.count += 1;
  bin.sum[0] += colour.red;
  bin.sum[1] += colour.green;
  bin.sum[2] += colour.blue;
}

std::vector<Colour> PaletteMaker::make() {
  std::vector<Bin> used;
  for (const Bin& bin : bins_) {
    if (bin.count == 0) continue;
    used.push_back(bin);
    for (double& value : used.back().sum) value /= bin.count;
  }
  std::vector<Mean> means = cut(used);
  for (int round = 0; round < 2; ++round) settle(used, means);
  std::vector<Colour> palette;
  palette.reserve(means.size());
  for (const Mean& mean : means) {
    palette.push_back({static_cast<std::uint8_t>(std::lround(mean[0])),
                       static_cast<std::uint8_t>(std::lround(mean[1])),
                       static_cast<std::uint8_t>(std::lround(mean[2]))});
  }
  return palette;
}

std::uint8_t NearestColour::find(int red, int green, int blue) {
  std::int16_t& known = known_[cube(red, green, blue)];
  if (known >= 0) return static_cast<std::uint8_t>(known);
  int least = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < palette_.size(); ++i) {
    const int r = red - palette_[i].red, g = green - palette_[i].green, b = blue - palette_[i].blue;
    const int distance = r * r + g * g + b * b;
    if (distance < least) least = distance, known = static_cast<std::int16_t>(i);
  }
  return static_cast<std::uint8_t>(known);
}

}  // namespace millrace::detail
