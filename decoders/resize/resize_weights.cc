#include "resize_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace millrace::detail {
namespace {

double box(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

struct Kernel {
  double (*function)(double);
  double support;
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::box:
      return {box, 0.5};
    case Filter::bicubic:
      return {bicubic, 2.0};
    case Filter::lanczos:
      return {lanczos, 3.0};
    default:
      return {bilinear, 1.0};
  }
}

// The taps of one output: the first one, and the weights in fixed point.
std::int32_t taps_of(std::int64_t in, double scale, const Kernel& kernel, std::int64_t output,
                     std::vector<double>& scratch, std::vector<std::int32_t>& weights) {
  const double filter_scale = std::max(scale, 1.0);
  const double support = kernel.support * filter_scale;
  const double center = (static_cast<double>(output) + 0.5) * scale;
  const double inverse = 1.0 / filter_scale;
  // The rounding of Pillow, whose results must be matched.
  // NOLINTBEGIN(bugprone-incorrect-roundings)
  auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
  auto last = std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), in);
  // NOLINTEND(bugprone-incorrect-roundings)
  scratch.clear();
  double sum = 0;
  for (std::int64_t x = 0; x < last - first; ++x) {
    double w = kernel.function((static_cast<double>(x + first) - center + 0.5) * inverse);
    scratch.push_back(w);
    sum += w;
  }
  weights.clear();
  for (double w : scratch) {
    if (sum != 0.0) w /= sum;
    w *= 1 << AxisWeights::precision_bits;
    weights.push_back(static_cast<std::int32_t>(w < 0 ? w - 0.5 : w + 0.5));
  }
  return static_cast<std::int32_t>(first);
}

void append_pairs(const std::vector<std::int32_t>& weights, AxisWeights::Output& output,
                  std::vector<std::int16_t>& low, std::vector<std::int16_t>& high) {
  constexpr std::int32_t mask = (1 << AxisWeights::low_bits) - 1;
  output.taps = static_cast<std::int32_t>(weights.size());
  output.offset = low.size();
  output.pairs = (output.taps + 3) / 4 * 2;
  for (std::int32_t pair = 0; pair < output.pairs; ++pair) {
    for (int i = 0; i < AxisWeights::pair_stride; ++i) {
      const std::size_t tap = 2 * static_cast<std::size_t>(pair) + static_cast<std::size_t>(i % 2);
      std::int32_t w = tap < weights.size() ? weights[tap] : 0;
      low.push_back(static_cast<std::int16_t>(w & mask));
      high.push_back(static_cast<std::int16_t>(w >> AxisWeights::low_bits));
    }
  }
}

Buffer aligned_copy(const std::vector<std::int16_t>& values) {
  Buffer buffer = Buffer::allocate(values.size() * sizeof(std::int16_t));
  if (!values.empty()) std::memcpy(buffer.data(), values.data(), buffer.size());
  return buffer;
}

void add_weighted(std::int64_t in, std::int64_t out, std::int64_t keep_first,
                  std::int64_t keep_count, Filter filter, AxisWeights& result) {
  const Kernel kernel = kernel_of(filter);
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  std::vector<double> scratch;
  std::vector<std::int32_t> weights;
  std::vector<std::int16_t> low, high;
  for (std::int64_t i = keep_first; i < keep_first + keep_count; ++i) {
    AxisWeights::Output output;
    output.first = taps_of(in, scale, kernel, i, scratch, weights);
    append_pairs(weights, output, low, high);
    result.outputs.push_back(output);
  }
  result.low_buffer = aligned_copy(low);
  result.high_buffer = aligned_copy(high);
}

// Pillow adds a step per pixel, so the rounding errors of that sum are part of the result.
void add_nearest(std::int64_t in, std::int64_t out, std::int64_t keep_first,
                 std::int64_t keep_count, AxisWeights& result) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  double at = scale * 0.5;
  for (std::int64_t i = 0; i < keep_first + keep_count; ++i, at += scale) {
    auto source = std::min(static_cast<std::int64_t>(at), in - 1);
    if (i >= keep_first) result.outputs.push_back({static_cast<std::int32_t>(source), 1, 0, 0});
  }
  result.nearest = true;
}

std::shared_ptr<const AxisWeights> compute(std::int64_t in, std::int64_t out,
                                           std::int64_t keep_first, std::int64_t keep_count,
                                           Filter filter) {
  auto result = std::make_shared<AxisWeights>();
  result->identity = in == out;
  if (in == out) {
    for (std::int64_t i = keep_first; i < keep_first + keep_count; ++i) {
      result->outputs.push_back({static_cast<std::int32_t>(i), 1, 0, 0});
    }
  } else if (filter == Filter::nearest) {
    add_nearest(in, out, keep_first, keep_count, *result);
  } else {
    add_weighted(in, out, keep_first, keep_count, filter, *result);
  }
  result->source_first = result->outputs.front().first;
  for (const AxisWeights::Output& output : result->outputs) {
    result->source_first = std::min(result->source_first, output.first);
    result->source_last = std::max(result->source_last, output.first + output.taps);
    result->max_taps = std::max(result->max_taps, output.taps);
  }
  return result;
}

struct CacheEntry {
  std::int64_t in, out, keep_first, keep_count;
  Filter filter;
  std::shared_ptr<const AxisWeights> weights;
};

}  // namespace

std::shared_ptr<const AxisWeights> axis_weights(std::int64_t in, std::int64_t out,
                                                std::int64_t keep_first, std::int64_t keep_count,
                                                Filter filter) {
  constexpr std::size_t kept = 8;
  thread_local std::vector<CacheEntry> cache;
  auto found = std::find_if(cache.begin(), cache.end(), [&](const CacheEntry& e) {
    return e.in == in && e.out == out && e.keep_first == keep_first && e.keep_count == keep_count &&
           e.filter == filter;
  });
  if (found == cache.end()) {
    auto weights = compute(in, out, keep_first, keep_count, filter);
    if (cache.size() == kept) cache.pop_back();
    found = cache.insert(cache.end(), {in, out, keep_first, keep_count, filter, weights});
  }
  std::rotate(cache.begin(), found, found + 1);
  return cache.front().weights;
}

}  // namespace millrace::detail
