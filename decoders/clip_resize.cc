#include "clip_resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace millrace {
namespace {

constexpr int precision_bits = 32 - 8 - 2;
constexpr std::int32_t half = 1 << (precision_bits - 1);

std::uint8_t clip8(std::int32_t value) {
  return static_cast<std::uint8_t>(std::clamp(value >> precision_bits, 0, 255));
}

// Four channels at once: the compiler makes one vector of it.
struct Sums {
  std::int32_t of[4] = {half, half, half, half};
  void add(std::uint32_t pixel, std::int32_t weight) {
    std::uint8_t parts[4];
    std::memcpy(parts, &pixel, 4);
    for (int c = 0; c < 4; ++c) of[c] += parts[c] * weight;
  }
  std::uint32_t pixel() const {
    std::uint8_t parts[4];
    for (int c = 0; c < 4; ++c) parts[c] = clip8(of[c]);
    std::uint32_t result = 0;
    std::memcpy(&result, parts, 4);
    return result;
  }
};

}  // namespace

void BoxResizer::prepare(Weights& w, int from, int to) {
  if (w.from == from && w.to == to) return;
  w.from = from;
  w.to = to;
  const double scale = static_cast<double>(from) / to;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_scale;  // of a triangle
  w.taps = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  w.starts.assign(static_cast<std::size_t>(to), 0);
  w.values.assign(static_cast<std::size_t>(to) * w.taps, 0);
  std::vector<double> exact(w.taps);
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int count = std::min(from, static_cast<int>(centre + support + 0.5)) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double distance = std::abs((k + first - centre + 0.5) / filter_scale);
      exact[static_cast<std::size_t>(k)] = std::max(0.0, 1.0 - distance);
      sum += exact[static_cast<std::size_t>(k)];
    }
    std::int32_t* values = w.values.data() + static_cast<std::size_t>(i) * w.taps;
    for (int k = 0; k < count && sum != 0; ++k) {
      values[k] = static_cast<std::int32_t>(0.5 + exact[static_cast<std::size_t>(k)] / sum *
                                                      (1 << precision_bits));
    }
    // All taps are always read: they must lie inside, with a weight of zero where there are fewer.
    int start = std::min(first, std::max(0, from - static_cast<int>(w.taps)));
    std::rotate(values, values + w.taps - static_cast<std::size_t>(first - start), values + w.taps);
    w.starts[static_cast<std::size_t>(i)] = start;
  }
  w.taps = std::min(w.taps, static_cast<std::size_t>(from));
}

void BoxResizer::across(const std::uint32_t* pixels, std::size_t stride, CropBox box, int width) {
  narrowed_.resize(static_cast<std::size_t>(box.height) * static_cast<std::size_t>(width));
  const std::size_t spacing = columns_.values.size() / static_cast<std::size_t>(width);
  for (int y = 0; y < box.height; ++y) {
    const std::uint32_t* row = pixels + static_cast<std::size_t>(box.y + y) * stride + box.x;
    std::uint32_t* out = narrowed_.data() + std::ptrdiff_t{y} * width;
    for (int x = 0; x < width; ++x) {
      const std::uint32_t* from = row + columns_.starts[static_cast<std::size_t>(x)];
      const std::int32_t* weights = columns_.values.data() + static_cast<std::size_t>(x) * spacing;
      Sums sums;
      for (std::size_t k = 0; k < columns_.taps; ++k) sums.add(from[k], weights[k]);
      out[x] = sums.pixel();
    }
  }
}

void BoxResizer::down(int width, FrameSize size) {
  result_.resize(static_cast<std::size_t>(size.height) * static_cast<std::size_t>(width));
  const std::size_t spacing = rows_.values.size() / static_cast<std::size_t>(size.height);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(width) * 4);
  for (int y = 0; y < size.height; ++y) {
    std::ranges::fill(sums, half);
    const std::int32_t* weights = rows_.values.data() + static_cast<std::size_t>(y) * spacing;
    for (std::size_t k = 0; k < rows_.taps; ++k) {
      const auto* row = reinterpret_cast<const std::uint8_t*>(
          narrowed_.data() +
          (static_cast<std::size_t>(rows_.starts[static_cast<std::size_t>(y)]) + k) *
              static_cast<std::size_t>(width));
      const std::int32_t weight = weights[k];
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += row[i] * weight;
    }
    auto* out = reinterpret_cast<std::uint8_t*>(result_.data() + std::ptrdiff_t{y} * width);
    for (std::size_t i = 0; i < sums.size(); ++i) out[i] = clip8(sums[i]);
  }
}

void BoxResizer::to_planes(const std::uint32_t* pixels, std::size_t stride, FrameSize size,
                           int channels) {
  const auto width = static_cast<std::size_t>(size.width);
  const std::size_t plane = width * static_cast<std::size_t>(size.height);
  planes_.resize(plane * static_cast<std::size_t>(channels));
  for (std::size_t y = 0; y < static_cast<std::size_t>(size.height); ++y) {
    const std::uint32_t* row = pixels + y * stride;
    std::uint8_t* out = planes_.data() + y * width;
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint32_t red = row[x] & 255, green = row[x] >> 8 & 255, blue = row[x] >> 16 & 255;
      if (channels == 1) {
        out[x] =
            static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
      } else {
        out[x] = static_cast<std::uint8_t>(red);
        out[x + plane] = static_cast<std::uint8_t>(green);
        out[x + 2 * plane] = static_cast<std::uint8_t>(blue);
      }
    }
  }
}

Planes BoxResizer::resize(const std::uint32_t* pixels, std::size_t stride, CropBox box,
                          FrameSize size, int channels) {
  if (box.width == size.width && box.height == size.height) {
    to_planes(pixels + static_cast<std::size_t>(box.y) * stride + box.x, stride, size, channels);
  } else {
    prepare(columns_, box.width, size.width);
    prepare(rows_, box.height, size.height);
    across(pixels, stride, box, size.width);
    down(size.width, size);
    to_planes(result_.data(), static_cast<std::size_t>(size.width), size, channels);
  }
  const auto width = static_cast<std::ptrdiff_t>(size.width);
  const std::ptrdiff_t plane = width * size.height;
  if (channels == 1) return {{planes_.data()}, {width}};
  return {{planes_.data(), planes_.data() + plane, planes_.data() + 2 * plane},
          {width, width, width}};
}

}  // namespace millrace
