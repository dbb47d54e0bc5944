#include "clip_resize.h"

#include <algorithm>
#include <cmath>

// Compiled once per instruction set by Highway's foreach_target; the best one is chosen at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "millrace/decoders/resize/clip_resize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef MILLRACE_CLIP_RESIZE_ONCE
#define MILLRACE_CLIP_RESIZE_ONCE
namespace millrace::detail {

constexpr int precision_bits = 32 - 8 - 2;
constexpr std::int32_t half = 1 << (precision_bits - 1);

struct Taps {
  const int* starts;
  const std::int32_t* weights;
  std::size_t count;    // number of weights per output pixel
  std::size_t spacing;  // distance from the weights of one output pixel to the next
};

}  // namespace millrace::detail
#endif

HWY_BEFORE_NAMESPACE();
namespace millrace::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Resizes one row to `width` pixels; the four channels of a pixel are the vector lanes.
void across_row(const std::uint32_t* row, const Taps& taps, std::size_t width, std::uint32_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < 4 * width; ++i) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(row + taps.starts[i / 4]) + i % 4;
    std::int32_t sum = half;
    for (std::size_t k = 0; k < taps.count; ++k) {
      sum += from[4 * k] * taps.weights[i / 4 * taps.spacing + k];
    }
    reinterpret_cast<std::uint8_t*>(out)[i] =
        static_cast<std::uint8_t>(std::clamp(sum >> precision_bits, 0, 255));
  }
#else
  const hn::FixedTag<std::int32_t, 4> ints;
  const hn::FixedTag<std::uint8_t, 4> bytes;
  for (std::size_t x = 0; x < width; ++x) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(row + taps.starts[x]);
    const std::int32_t* weights = taps.weights + x * taps.spacing;
    auto sum = hn::Set(ints, half);
    for (std::size_t k = 0; k < taps.count; ++k) {
      const auto pixel = hn::PromoteTo(ints, hn::LoadU(bytes, from + 4 * k));
      sum = hn::Add(sum, hn::Mul(pixel, hn::Set(ints, weights[k])));
    }
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<precision_bits>(sum)), bytes,
               reinterpret_cast<std::uint8_t*>(out + x));
  }
#endif
}

// Combines `count` adjacent rows of `bytes_per_row` bytes to one row.
void down_row(const std::uint8_t* rows, const std::int32_t* weights, std::size_t count,
              std::size_t bytes_per_row, std::uint8_t* out) {
  const hn::ScalableTag<std::int32_t> ints;
  const hn::Rebind<std::uint8_t, decltype(ints)> bytes;
  const std::size_t lanes = hn::Lanes(ints);
  std::size_t i = 0;
  for (; i + lanes <= bytes_per_row; i += lanes) {
    auto sum = hn::Set(ints, half);
    for (std::size_t k = 0; k < count; ++k) {
      const auto value = hn::PromoteTo(ints, hn::LoadU(bytes, rows + k * bytes_per_row + i));
      sum = hn::Add(sum, hn::Mul(value, hn::Set(ints, weights[k])));
    }
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<precision_bits>(sum)), bytes, out + i);
  }
  for (; i < bytes_per_row; ++i) {
    std::int32_t sum = half;
    for (std::size_t k = 0; k < count; ++k) sum += rows[k * bytes_per_row + i] * weights[k];
    out[i] = static_cast<std::uint8_t>(std::clamp(sum >> precision_bits, 0, 255));
  }
}

}  // namespace millrace::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::detail {

HWY_EXPORT(across_row);
HWY_EXPORT(down_row);

void BoxResizer::prepare(Weights& w, int from, int to) {
  if (w.from == from && w.to == to) return;
  w.from = from;
  w.to = to;
  const double scale = static_cast<double>(from) / to;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_scale;  // of the triangle filter
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
    // All taps are always read, so they must be inside the picture; surplus taps have weight zero.
    int start = std::min(first, std::max(0, from - static_cast<int>(w.taps)));
    std::rotate(values, values + w.taps - static_cast<std::size_t>(first - start), values + w.taps);
    w.starts[static_cast<std::size_t>(i)] = start;
  }
  w.taps = std::min(w.taps, static_cast<std::size_t>(from));
}

void BoxResizer::across(const std::uint32_t* pixels, std::size_t stride, CropBox box, int width) {
  const auto columns = static_cast<std::size_t>(width);
  narrowed_.resize(static_cast<std::size_t>(box.height) * columns);
  const Taps taps{columns_.starts.data(), columns_.values.data(), columns_.taps,
                  columns_.values.size() / columns};
  for (std::size_t y = 0; y < static_cast<std::size_t>(box.height); ++y) {
    const std::uint32_t* row = pixels + (static_cast<std::size_t>(box.y) + y) * stride + box.x;
    HWY_DYNAMIC_DISPATCH(across_row)(row, taps, columns, narrowed_.data() + y * columns);
  }
}

void BoxResizer::down(FrameSize size) {
  const auto columns = static_cast<std::size_t>(size.width);
  const auto rows = static_cast<std::size_t>(size.height);
  result_.resize(rows * columns);
  const std::size_t spacing = rows_.values.size() / rows;
  for (std::size_t y = 0; y < rows; ++y) {
    const std::uint32_t* from =
        narrowed_.data() + static_cast<std::size_t>(rows_.starts[y]) * columns;
    HWY_DYNAMIC_DISPATCH(down_row)
    (reinterpret_cast<const std::uint8_t*>(from), rows_.values.data() + y * spacing, rows_.taps,
     columns * 4, reinterpret_cast<std::uint8_t*>(result_.data() + y * columns));
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
    down(size);
    to_planes(result_.data(), static_cast<std::size_t>(size.width), size, channels);
  }
  const auto width = static_cast<std::ptrdiff_t>(size.width);
  const std::ptrdiff_t plane = width * size.height;
  if (channels == 1) return {{planes_.data()}, {width}};
  return {{planes_.data(), planes_.data() + plane, planes_.data() + 2 * plane},
          {width, width, width}};
}

}  // namespace millrace::detail
#endif
