// Private: the weights of one axis of a resize, computed as in Pillow: as doubles, normalised, then
// rounded to 22 fractional bits.
#pragma once

#include <millrace/decoders/resize/resize.h>
#include <millrace/pipeline/data/buffer.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace::detail {

// Note [Weights in two halves]
// Pillow multiplies bytes by 32-bit weights. Vector instructions multiply and add pairs of 16-bit
// numbers twice as fast, so a weight w is stored as w = high * 2^15 + low with 0 <= low < 2^15, and
// the two sums are joined at the end. 32-bit sums may wrap modulo 2^32, but the joined sum fits, so
// the result is bit-identical to Pillow's. Each pair of taps is stored four times in a row, once
// per channel, so that one load fills a whole 128-bit block.
struct AxisWeights {
  static constexpr int precision_bits = 32 - 8 - 2;
  static constexpr int low_bits = 15;
  static constexpr int pair_stride = 8;  // number of 16-bit values per pair of taps

  struct Output {
    std::int32_t first = 0;  // source index of the first tap
    std::int32_t taps = 0;   // number of taps; if odd, the last one is half a pair
    std::size_t offset = 0;  // of its pairs in low and high
    std::int32_t pairs = 0;  // padded with zeros to an even number
  };
  std::vector<Output> outputs;                     // only those inside the crop
  std::int32_t source_first = 0, source_last = 0;  // all taps are in [first, last)
  std::int32_t max_taps = 0;
  bool identity = false;  // the axis keeps its size: rows or columns are copied
  bool nearest = false;   // `first` is the source index, and there are no weights
  Buffer low_buffer, high_buffer;

  const std::int16_t* low() const { return reinterpret_cast<std::int16_t*>(low_buffer.data()); }
  const std::int16_t* high() const { return reinterpret_cast<std::int16_t*>(high_buffer.data()); }
};

// The outputs [keep_first, keep_first + keep_count) of an axis that is resized from `in` to `out`
// elements. Each thread caches the last few results.
std::shared_ptr<const AxisWeights> axis_weights(std::int64_t in, std::int64_t out,
                                                std::int64_t keep_first, std::int64_t keep_count,
                                                Filter filter);

}  // namespace millrace::detail
