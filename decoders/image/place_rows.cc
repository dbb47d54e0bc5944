#include "place_rows.h"

#include "pixel_convert.h"

#include <algorithm>
#include <cstring>

// Compiled once per instruction set by Highway's foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "millrace/decoders/image/place_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Reads and writes whole vectors: all four rows have padding for one vector after their end.
void split_rgb(const std::uint8_t* row, std::int64_t pixels, std::uint8_t* red, std::uint8_t* green,
               std::uint8_t* blue) {
  const hn::CappedTag<std::uint8_t, 16> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(bytes));
  for (std::int64_t x = 0; x < pixels; x += lanes) {
    hn::Vec<decltype(bytes)> r, g, b;
    hn::LoadInterleaved3(bytes, row + 3 * x, r, g, b);
    hn::StoreU(r, bytes, red + x);
    hn::StoreU(g, bytes, green + x);
    hn::StoreU(b, bytes, blue + x);
  }
}

// Divides, as torchvision's ToTensor: a product with 1/255 would round differently.
std::int64_t to_unit(const std::uint8_t* values, std::int64_t count, float* to) {
  const hn::ScalableTag<float> floats;
  const hn::Rebind<std::int32_t, decltype(floats)> ints;
  const hn::Rebind<std::uint8_t, decltype(floats)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(floats));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::ConvertTo(floats, hn::PromoteTo(ints, hn::LoadU(bytes, values + i)));
    hn::StoreU(hn::Div(value, hn::Set(floats, 255.0F)), floats, to + i);
  }
  return i;
}

}  // namespace millrace::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::detail {

HWY_EXPORT(split_rgb);
HWY_EXPORT(to_unit);

void split_rgb_row(const std::uint8_t* row, std::int64_t pixels, std::uint8_t* red,
                   std::uint8_t* green, std::uint8_t* blue) {
  HWY_DYNAMIC_DISPATCH(split_rgb)(row, pixels, red, green, blue);
}

PlaceRows::PlaceRows(const Array& destination, Layout layout, int channels_in, int channels_out,
                     bool weighted)
    : to_(destination.data()),
      floats_(destination.dtype() == DType::float32),
      planes_(layout == Layout::chw),
      weighted_(weighted),
      in_(channels_in),
      out_(channels_out),
      width_(destination.shape()[planes_ ? 2 : 1]),
      plane_(width_ * destination.shape()[planes_ ? 1 : 0]),
      memory_(Scratch::of_this_thread().placed) {
  Scratch::ensure(memory_, static_cast<std::size_t>(width_ * 8) + 8 * row_padding);
}

void PlaceRows::rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, ++y_, first += stride) place(first);
}

void PlaceRows::store(const std::uint8_t* values, std::int64_t count, std::int64_t at) {
  if (!floats_) {
    std::memcpy(to_ + at, values, static_cast<std::size_t>(count));
    return;
  }
  auto* to = reinterpret_cast<float*>(to_) + at;
  for (std::int64_t i = HWY_DYNAMIC_DISPATCH(to_unit)(values, count, to); i < count; ++i) {
    to[i] = static_cast<float>(values[i]) / 255.0F;
  }
}

void PlaceRows::place(const std::uint8_t* row) {
  const std::int64_t gap = width_ + static_cast<std::int64_t>(row_padding);
  std::uint8_t* const work = memory_.data();
  std::uint8_t* const lines = work + 4 * gap;
  if (weighted_) {
    std::memcpy(work, row, static_cast<std::size_t>(4 * width_));
    unpremultiply(work, width_);
    row = work;
  }
  if (!planes_) {
    if (in_ != out_) {
      convert_row({.from = in_, .to = out_}, row, width_, lines);
      row = lines;
    }
    store(row, width_ * out_, y_ * width_ * out_);
    return;
  }
  if (in_ == 3) {
    split_rgb_row(row, width_, lines, lines + gap, lines + 2 * gap);
  } else if (in_ == 4) {
    for (std::int64_t x = 0; x < width_; ++x) {
      for (int c = 0; c < 4; ++c) lines[c * gap + x] = row[4 * x + c];
    }
  }
  for (int c = 0; c < out_; ++c) {
    store(in_ == 1 ? row : lines + c * gap, width_, c * plane_ + y_ * width_);
  }
}

}  // namespace millrace::detail
#endif  // HWY_ONCE
