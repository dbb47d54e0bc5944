#include "resize_kernels.h"

#include <array>
#include <cstring>

// Compiled once per instruction set by Highway's foreach_target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "millrace/decoders/resize/resize_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int rounding = 1 << (AxisWeights::precision_bits - 1);

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// Scalar code, for instruction sets without vectors of a known size.
std::int32_t weight(const AxisWeights& axis, std::size_t offset, std::int32_t tap) {
  const std::size_t at =
      offset + static_cast<std::size_t>(tap / 2 * AxisWeights::pair_stride + tap % 2);
  return axis.high()[at] * (1 << AxisWeights::low_bits) + axis.low()[at];
}

std::uint8_t rounded(std::int32_t sum) {
  const std::int32_t value = (sum + rounding) >> AxisWeights::precision_bits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

void narrow_all(const AxisWeights& columns, int channels, bool flip,
                const std::uint8_t* const* source, std::uint8_t* const* narrow) {
  const auto width = static_cast<std::ptrdiff_t>(columns.outputs.size());
  for (std::ptrdiff_t x = 0; x < width; ++x) {
    const AxisWeights::Output& output = columns.outputs[static_cast<std::size_t>(x)];
    const std::ptrdiff_t from = std::ptrdiff_t{output.first - columns.source_first} * channels;
    const std::ptrdiff_t to = (flip ? width - 1 - x : x) * channels;
    for (int i = 0; i < rows_at_once * channels; ++i) {
      const int row = i / channels, channel = i % channels;
      std::int32_t sum = 0;
      for (std::int32_t tap = 0; tap < output.taps; ++tap) {
        sum += source[row][from + tap * channels + channel] * weight(columns, output.offset, tap);
      }
      narrow[row][to + channel] = rounded(sum);
    }
  }
}

void blend_all(const AxisWeights& rows, const AxisWeights::Output& output,
               const std::uint8_t* const* taps, std::size_t bytes, std::uint8_t* out) {
  for (std::size_t x = 0; x < bytes; ++x) {
    std::int32_t sum = 0;
    for (std::int32_t tap = 0; tap < output.taps; ++tap) {
      sum += taps[tap][x] * weight(rows, output.offset, tap);
    }
    out[x] = rounded(sum);
  }
}

#else

// 256 bits at most: one 128-bit load of pixels, repeated, feeds all blocks.
using D8 = hn::CappedTag<std::uint8_t, 32>;
using D16 = hn::Repartition<std::int16_t, D8>;
using D32 = hn::Repartition<std::int32_t, D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
constexpr D8 d8;
constexpr D16 d16;
constexpr D32 d32;
constexpr int blocks = static_cast<int>(hn::MaxLanes(d8) / 16);

// Sums of low and high halves; the second of each is for instruction sets whose multiply-add keeps
// odd and even products separate.
struct Sum {
  V32 low, low_rest, high, high_rest;

  HWY_INLINE Sum() : low(hn::Zero(d32)), low_rest(low), high(low), high_rest(low) {}

  HWY_INLINE void add(V16 pixels, V16 low_weights, V16 high_weights) {
    low = hn::ReorderWidenMulAccumulate(d32, pixels, low_weights, low, low_rest);
    high = hn::ReorderWidenMulAccumulate(d32, pixels, high_weights, high, high_rest);
  }
  HWY_INLINE V32 joined() const {
    V32 l = hn::RearrangeToOddPlusEven(low, low_rest);
    V32 h = hn::RearrangeToOddPlusEven(high, high_rest);
    return hn::Add(l, hn::ShiftLeft<AxisWeights::low_bits>(h));
  }
};

HWY_INLINE V32 rounded(V32 sum) {
  return hn::ShiftRight<AxisWeights::precision_bits>(hn::Add(sum, hn::Set(d32, rounding)));
}

// The shuffle of a load to the 16-bit numbers r0 r1 g0 g1 b0 b1 a0 a1 of a block: the same channel
// of two neighbouring pixels side by side, zero for a missing channel.
template <int channels>
constexpr std::array<std::uint8_t, 32> pixel_order() {
  std::array<std::uint8_t, 32> order{};
  for (int i = 0; i < 32; ++i) {
    int block = i / 16, channel = i % 16 / 4, pixel = i % 4 / 2;
    bool zero = i % 2 == 1 || channel >= channels;
    order[static_cast<std::size_t>(i)] =
        zero ? 0x80 : static_cast<std::uint8_t>((2 * block + pixel) * channels + channel);
  }
  return order;
}

// Each block of the vector has the sum of different taps: adds the blocks up, those of `a` into the
// lower block and those of `b` into the upper one.
HWY_INLINE V32 fold(V32 a, V32 b) {
  return hn::Add(hn::ConcatLowerLower(d32, b, a), hn::ConcatUpperUpper(d32, b, a));
}

// The pixels of four rows, four bytes each.
HWY_INLINE void pixels_of(const Sum& a, const Sum& b, const Sum& c, const Sum& d,
                          std::uint32_t* pixels) {
  const hn::Rebind<std::uint8_t, D16> bytes;
  auto* to = reinterpret_cast<std::uint8_t*>(pixels);
  if constexpr (blocks > 1) {
    // Demoting keeps to blocks, so rows go in as they must come out: a, b, c, d.
    const V16 all = hn::ReorderDemote2To(d16, rounded(fold(a.joined(), c.joined())),
                                         rounded(fold(b.joined(), d.joined())));
    hn::StoreU(hn::DemoteTo(bytes, all), bytes, to);
  } else {
    const V16 ab = hn::ReorderDemote2To(d16, rounded(a.joined()), rounded(b.joined()));
    const V16 cd = hn::ReorderDemote2To(d16, rounded(c.joined()), rounded(d.joined()));
    hn::StoreU(hn::DemoteTo(bytes, ab), bytes, to);
    hn::StoreU(hn::DemoteTo(bytes, cd), bytes, to + 8);
  }
}

// Four rows at once. A group of fewer repeats its last row, whose result is then written twice.
template <int channels, bool flip>
void narrow_four(const AxisWeights& columns, const std::uint8_t* const* source,
                 std::uint8_t* const* narrow) {
  alignas(32) static constexpr std::array<std::uint8_t, 32> order_bytes = pixel_order<channels>();
  const auto order = hn::Load(d8, order_bytes.data());
  const auto width = static_cast<std::ptrdiff_t>(columns.outputs.size());
  const std::uint8_t *row_a = source[0], *row_b = source[1], *row_c = source[2], *row_d = source[3];
  for (std::ptrdiff_t x = 0; x < width; ++x) {
    const AxisWeights::Output& output = columns.outputs[static_cast<std::size_t>(x)];
    const std::int16_t* low = columns.low() + output.offset;
    const std::int16_t* high = columns.high() + output.offset;
    std::ptrdiff_t at = std::ptrdiff_t{output.first - columns.source_first} * channels;
    Sum a, b, c, d;
    for (std::ptrdiff_t pair = 0; pair < output.pairs; pair += blocks) {
      const V16 low_weights = hn::Load(d16, low + pair * AxisWeights::pair_stride);
      const V16 high_weights = hn::Load(d16, high + pair * AxisWeights::pair_stride);
      auto add = [&](Sum& sum, const std::uint8_t* row) HWY_ATTR {
        const auto bytes = hn::LoadDup128(d8, row + at);
        sum.add(hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, order)), low_weights, high_weights);
      };
      add(a, row_a);
      add(b, row_b);
      add(c, row_c);
      add(d, row_d);
      at += std::ptrdiff_t{2} * blocks * channels;
    }
    std::uint32_t pixels[4];
    pixels_of(a, b, c, d, pixels);
    // Left to right: bytes written past a pixel are overwritten by the next pixel.
    constexpr std::size_t spill = channels == 3 && !flip;
    constexpr std::size_t stored = channels + spill;
    const std::ptrdiff_t to = (flip ? width - 1 - x : x) * channels;
    for (int row = 0; row < rows_at_once; ++row)
      std::memcpy(narrow[row] + to, &pixels[row], stored);
  }
}

template <int channels>
void narrow_channels(const AxisWeights& columns, bool flip, const std::uint8_t* const* source,
                     std::uint8_t* const* narrow) {
  if (flip) return narrow_four<channels, true>(columns, source, narrow);
  narrow_four<channels, false>(columns, source, narrow);
}

void narrow_all(const AxisWeights& columns, int channels, bool flip,
                const std::uint8_t* const* source, std::uint8_t* const* narrow) {
  if (channels == 1) return narrow_channels<1>(columns, flip, source, narrow);
  if (channels == 3) return narrow_channels<3>(columns, flip, source, narrow);
  narrow_channels<4>(columns, flip, source, narrow);
}

// Converts four vectors of sums, interleaved by blend_all(), back to bytes in order.
HWY_INLINE hn::Vec<D8> bytes_of(const Sum* sums) {
  alignas(32) static constexpr std::uint8_t even_then_odd[32] = {
      0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
      0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15};
  const V16 top = hn::Set(d16, 255), zero = hn::Zero(d16);
  V16 a = hn::ReorderDemote2To(d16, rounded(sums[0].joined()), rounded(sums[1].joined()));
  V16 b = hn::ReorderDemote2To(d16, rounded(sums[2].joined()), rounded(sums[3].joined()));
  a = hn::Min(hn::Max(a, zero), top);
  b = hn::Min(hn::Max(b, zero), top);
  const auto mixed = hn::BitCast(d8, hn::Or(a, hn::ShiftLeft<8>(b)));
  return hn::TableLookupBytes(mixed, hn::Load(d8, even_then_odd));
}

void blend_all(const AxisWeights& rows, const AxisWeights::Output& output,
               const std::uint8_t* const* taps, std::size_t bytes, std::uint8_t* out) {
  const auto zero = hn::Zero(d8);
  const std::int16_t* low = rows.low() + output.offset;
  const std::int16_t* high = rows.high() + output.offset;
  const std::int32_t pairs = (output.taps + 1) / 2;
  for (std::size_t x = 0; x < bytes; x += hn::MaxLanes(d8)) {
    Sum sums[4];
    for (std::ptrdiff_t pair = 0; pair < pairs; ++pair) {
      const auto a = hn::LoadU(d8, taps[2 * pair] + x);
      const auto b = hn::LoadU(d8, taps[2 * pair + 1] + x);
      const V16 low_weights = hn::LoadDup128(d16, low + pair * AxisWeights::pair_stride);
      const V16 high_weights = hn::LoadDup128(d16, high + pair * AxisWeights::pair_stride);
      const auto lower = hn::InterleaveLower(d8, a, b), upper = hn::InterleaveUpper(d8, a, b);
      auto add = [&](Sum& sum, hn::Vec<D8> pixels)
                     HWY_ATTR { sum.add(hn::BitCast(d16, pixels), low_weights, high_weights); };
      add(sums[0], hn::InterleaveLower(d8, lower, zero));
      add(sums[1], hn::InterleaveUpper(d8, lower, zero));
      add(sums[2], hn::InterleaveLower(d8, upper, zero));
      add(sums[3], hn::InterleaveUpper(d8, upper, zero));
    }
    hn::StoreU(bytes_of(sums), d8, out + x);
  }
}

#endif

}  // namespace millrace::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::detail {

HWY_EXPORT(narrow_all);
HWY_EXPORT(blend_all);

void narrow_rows(const AxisWeights& columns, int channels, bool flip,
                 const std::uint8_t* const* source, std::uint8_t* const* narrow) {
  HWY_DYNAMIC_DISPATCH(narrow_all)(columns, channels, flip, source, narrow);
}

void blend_rows(const AxisWeights& rows, const AxisWeights::Output& output,
                const std::uint8_t* const* taps, std::size_t bytes, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(blend_all)(rows, output, taps, bytes, out);
}

}  // namespace millrace::detail
#endif  // HWY_ONCE
