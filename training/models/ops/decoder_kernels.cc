#include "decoder_kernels.h"

#include <algorithm>
#include <cmath>

// Compiled once per instruction set by Highway's foreach_target; the best one is chosen at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "millrace/training/models/ops/decoder_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// Has its own include guard per instruction set.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// Floats in the longest vector register. Buffers that are accessed by whole vectors have room for
// one more.
constexpr std::int64_t most_lanes = HWY_MAX_BYTES / sizeof(float);

HWY_INLINE std::int64_t lanes() {
  return static_cast<std::int64_t>(hn::Lanes(Floats()));
}

HWY_INLINE float dot(const float* a, const float* b, std::int64_t count) {
  const Floats floats;
  Vector even = hn::Zero(floats), odd = even;
  std::int64_t i = 0;
  for (; i + 2 * lanes() <= count; i += 2 * lanes()) {
    even = hn::MulAdd(hn::LoadU(floats, a + i), hn::LoadU(floats, b + i), even);
    odd = hn::MulAdd(hn::LoadU(floats, a + i + lanes()), hn::LoadU(floats, b + i + lanes()), odd);
  }
  for (; i + lanes() <= count; i += lanes()) {
    even = hn::MulAdd(hn::LoadU(floats, a + i), hn::LoadU(floats, b + i), even);
  }
  float sum = hn::GetLane(hn::SumOfLanes(floats, hn::Add(even, odd)));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Vectors in memory, `stride` floats apart, with a weight each.
struct Weighted {
  std::int64_t count = 0;
  const float* weights = nullptr;
  std::int64_t weight_stride = 1;
  const float* from = nullptr;
  std::int64_t stride = 0;
};

// to (+)= weighted sum of `all`, for `wide` vector registers of channels.
template <int wide, bool adding>
HWY_INLINE void combine_some(const Weighted& all, const float* from, float* to) {
  const Floats floats;
  Vector sums[wide];
  for (int v = 0; v < wide; ++v) {
    sums[v] = adding ? hn::LoadU(floats, to + v * lanes()) : hn::Zero(floats);
  }
  for (std::int64_t i = 0; i < all.count; ++i) {
    const Vector weight = hn::Set(floats, all.weights[i * all.weight_stride]);
    for (int v = 0; v < wide; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(floats, from + i * all.stride + v * lanes()), sums[v]);
    }
  }
  for (int v = 0; v < wide; ++v) hn::StoreU(sums[v], floats, to + v * lanes());
}

template <bool adding>
HWY_INLINE void combine(const Weighted& all, std::int64_t channels, float* to) {
  constexpr int wide = 4;
  std::int64_t c = 0;
  for (; c + wide * lanes() <= channels; c += wide * lanes()) {
    combine_some<wide, adding>(all, all.from + c, to + c);
  }
  for (; c + lanes() <= channels; c += lanes()) {
    combine_some<1, adding>(all, all.from + c, to + c);
  }
  for (; c < channels; ++c) {
    float sum = adding ? to[c] : 0;
    for (std::int64_t i = 0; i < all.count; ++i) {
      sum += all.weights[i * all.weight_stride] * all.from[i * all.stride + c];
    }
    to[c] = sum;
  }
}

// Softmax of the first `count` values, in place. The buffer must have room for one more vector.
HWY_INLINE void softmax(float* values, std::int64_t count) {
  const Floats floats;
  float largest = values[0];
  for (std::int64_t i = 1; i < count; ++i) largest = std::max(largest, values[i]);
  float sum = 0;
  for (std::int64_t i = 0; i < count; i += lanes()) {
    const Vector x = hn::Sub(hn::LoadU(floats, values + i), hn::Set(floats, largest));
    hn::StoreU(hn::Exp(floats, x), floats, values + i);
  }
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  for (std::int64_t i = 0; i < count; ++i) values[i] /= sum;
}

// Offsets of one head's data within a row.
struct Head {
  Head(const ShortAttentionSizes& s, std::int64_t head)
      : query(head * s.channels),
        key((s.heads + head % s.key_heads) * s.channels),
        value(key + s.key_heads * s.channels),
        memory(head % s.key_heads * s.memories * s.channels),
        weight(head * s.length * s.keys()) {}
  std::int64_t query, key, value, memory, weight;
};

void attention_forward(const ShortAttentionSizes& s, const ShortAttentionRow& row, float* out) {
  const std::int64_t stride = s.stride();
  HWY_ALIGN float scores[short_attention_keys + most_lanes] = {};
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const Head head(s, h);
    for (std::int64_t i = 0; i < s.length; ++i) {
      const float* query = row.qkv + i * stride + head.query;
      const std::int64_t seen = s.memories + i + 1;
      for (std::int64_t j = 0; j < s.memories; ++j) {
        const float* key = row.memory_keys + head.memory + j * s.channels;
        scores[j] = dot(query, key, s.channels) * s.scale;
      }
      for (std::int64_t j = 0; j <= i; ++j) {
        scores[s.memories + j] = dot(query, row.qkv + j * stride + head.key, s.channels) * s.scale;
      }
      softmax(scores, seen);
      float* weights = row.weights + head.weight + i * s.keys();
      std::copy_n(scores, seen, weights);
      std::fill(weights + seen, weights + s.keys(), 0.F);
      float* to = out + (i * s.heads + h) * s.channels;
      combine<false>({i + 1, weights + s.memories, 1, row.qkv + head.value, stride}, s.channels,
                     to);
      if (s.memories == 0) continue;
      combine<true>({s.memories, weights, 1, row.memory_values + head.memory, s.channels},
                    s.channels, to);
    }
  }
}

// Backward pass of the softmax of one query: turns gradients of the attention weights into
// gradients of the products of query and keys.
HWY_INLINE void softmax_backward(const ShortAttentionSizes& s, const float* weights,
                                 std::int64_t seen, float* gradient) {
  float mean = 0;
  for (std::int64_t j = 0; j < seen; ++j) mean += weights[j] * gradient[j];
  for (std::int64_t j = 0; j < seen; ++j) {
    gradient[j] = weights[j] * (gradient[j] - mean) * s.scale;
  }
}

// Adds the gradients of one head's keys and values, over all queries that attend to them.
HWY_INLINE void add_key_value_gradients(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                                        const ShortAttentionGradients& to, std::int64_t h,
                                        const float* products) {
  const Head head(s, h);
  const std::int64_t stride = s.stride(), keys = s.keys(), width = s.heads * s.channels;
  const float* weights = row.weights + head.weight;
  const float* of_out = to.of_out + head.query;
  for (std::int64_t j = 0; j < s.memories; ++j) {
    const std::int64_t at = head.memory + j * s.channels;
    combine<true>({s.length, products + j, keys, row.qkv + head.query, stride}, s.channels,
                  to.memory_keys + at);
    combine<true>({s.length, weights + j, keys, of_out, width}, s.channels, to.memory_values + at);
  }
  for (std::int64_t j = 0; j < s.length; ++j) {
    // Index of the weight of token j for itself; later tokens follow.
    const std::int64_t weight = j * keys + s.memories + j;
    combine<true>(
        {s.length - j, products + weight, keys, row.qkv + head.query + j * stride, stride},
        s.channels, to.qkv + j * stride + head.key);
    combine<true>({s.length - j, weights + weight, keys, of_out + j * width, width}, s.channels,
                  to.qkv + j * stride + head.value);
  }
}

void attention_backward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                        const ShortAttentionGradients& to) {
  const std::int64_t stride = s.stride(), keys = s.keys();
  std::fill(to.qkv, to.qkv + s.length * stride, 0.F);
  HWY_ALIGN float products[short_attention_keys * short_attention_keys];  // [length, keys]
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const Head head(s, h);
    for (std::int64_t i = 0; i < s.length; ++i) {
      const float* of_out = to.of_out + (i * s.heads + h) * s.channels;
      float* gradient = products + i * keys;
      for (std::int64_t j = 0; j < s.memories; ++j) {
        const float* value = row.memory_values + head.memory + j * s.channels;
        gradient[j] = dot(of_out, value, s.channels);
      }
      for (std::int64_t j = 0; j <= i; ++j) {
        gradient[s.memories + j] = dot(of_out, row.qkv + j * stride + head.value, s.channels);
      }
      softmax_backward(s, row.weights + head.weight + i * keys, s.memories + i + 1, gradient);
      float* of_query = to.qkv + i * stride + head.query;
      combine<false>({i + 1, gradient + s.memories, 1, row.qkv + head.key, stride}, s.channels,
                     of_query);
      if (s.memories == 0) continue;
      combine<true>({s.memories, gradient, 1, row.memory_keys + head.memory, s.channels},
                    s.channels, of_query);
    }
    add_key_value_gradients(s, row, to, h, products);
  }
}

// The normal distribution at x: cumulative probability and density.
struct Normal {
  Vector below, density;
};

// erf by formula 7.1.26 of Abramowitz and Stegun. It uses the same exp as the density.
HWY_INLINE Normal normal(Vector x) {
  const Floats floats;
  const Vector one = hn::Set(floats, 1.F), half = hn::Set(floats, 0.5F);
  const Vector bell = hn::Exp(floats, hn::Mul(hn::Mul(x, x), hn::Set(floats, -0.5F)));
  const Vector size = hn::Mul(hn::Abs(x), hn::Set(floats, 0.70710678118654752F));
  const Vector t = hn::Div(one, hn::MulAdd(size, hn::Set(floats, 0.3275911F), one));
  Vector sum = hn::Set(floats, 1.061405429F);
  for (const float factor : {-1.453152027F, 1.421413741F, -0.284496736F, 0.254829592F}) {
    sum = hn::MulAdd(sum, t, hn::Set(floats, factor));
  }
  const Vector beyond = hn::Mul(hn::Mul(hn::Mul(sum, t), bell), half);  // probability above |x|
  const Vector below = hn::IfThenElse(hn::Lt(x, hn::Zero(floats)), beyond, hn::Sub(one, beyond));
  return {below, hn::Mul(bell, hn::Set(floats, 0.39894228040143268F))};
}

HWY_INLINE void gelu_forward_vector(const float* value, const float* gate, float* out) {
  const Floats floats;
  const Vector x = hn::LoadU(floats, gate);
  const Vector gelu = hn::Mul(x, normal(x).below);
  hn::StoreU(hn::Mul(hn::LoadU(floats, value), gelu), floats, out);
}

void gelu_forward(const float* value, const float* gate, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) gelu_forward_vector(value + i, gate + i, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[3][most_lanes] = {};
  std::copy(value + i, value + count, rest[0]);
  std::copy(gate + i, gate + count, rest[1]);
  gelu_forward_vector(rest[0], rest[1], rest[2]);
  std::copy_n(rest[2], count - i, out + i);
}

HWY_INLINE void gelu_backward_vector(const float* value, const float* gate, const float* of_out,
                                     float* of_value, float* of_gate) {
  const Floats floats;
  const Vector x = hn::LoadU(floats, gate), given = hn::LoadU(floats, of_out);
  const Normal at = normal(x);
  hn::StoreU(hn::Mul(given, hn::Mul(x, at.below)), floats, of_value);
  const Vector slope = hn::MulAdd(x, at.density, at.below);
  hn::StoreU(hn::Mul(hn::Mul(given, hn::LoadU(floats, value)), slope), floats, of_gate);
}

void gelu_backward(const float* value, const float* gate, const float* of_out, std::int64_t count,
                   float* of_value, float* of_gate) {
  std::int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) {
    gelu_backward_vector(value + i, gate + i, of_out + i, of_value + i, of_gate + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest[5][most_lanes] = {};
  std::copy(value + i, value + count, rest[0]);
  std::copy(gate + i, gate + count, rest[1]);
  std::copy(of_out + i, of_out + count, rest[2]);
  gelu_backward_vector(rest[0], rest[1], rest[2], rest[3], rest[4]);
  std::copy_n(rest[3], count - i, of_value + i);
  std::copy_n(rest[4], count - i, of_gate + i);
}

// scale / |x|
HWY_INLINE float scale_over_length(const float* x, float scale, std::int64_t channels) {
  return scale / std::max(std::sqrt(dot(x, x, channels)), 1e-12F);
}

void norm_forward(const float* x, const float* factor, float scale, std::int64_t channels,
                  float* out) {
  const Floats floats;
  const float size = scale_over_length(x, scale, channels);
  const Vector sizes = hn::Set(floats, size);
  std::int64_t c = 0;
  for (; c + lanes() <= channels; c += lanes()) {
    const Vector y = hn::Mul(hn::LoadU(floats, x + c), sizes);
    hn::StoreU(hn::Mul(y, hn::LoadU(floats, factor + c)), floats, out + c);
  }
  for (; c < channels; ++c) out[c] = x[c] * size * factor[c];
}

void norm_backward(const float* x, const float* factor, const float* of_out, float scale,
                   std::int64_t channels, float* of_x, float* of_factor) {
  const Floats floats;
  const float size = scale_over_length(x, scale, channels);
  const Vector sizes = hn::Set(floats, size);
  std::int64_t c = 0;
  for (; c + lanes() <= channels; c += lanes()) {
    const Vector given = hn::LoadU(floats, of_out + c);
    const Vector y = hn::Mul(hn::LoadU(floats, x + c), sizes);
    hn::StoreU(hn::MulAdd(given, y, hn::LoadU(floats, of_factor + c)), floats, of_factor + c);
    hn::StoreU(hn::Mul(given, hn::LoadU(floats, factor + c)), floats, of_x + c);
  }
  for (; c < channels; ++c) {
    of_factor[c] += of_out[c] * x[c] * size;
    of_x[c] = of_out[c] * factor[c];
  }
  // Removes the component along x, because the output does not depend on the length of x.
  const float along = -dot(of_x, x, channels) * (size / scale) * (size / scale);
  const Vector alongs = hn::Set(floats, along);
  for (c = 0; c + lanes() <= channels; c += lanes()) {
    const Vector y = hn::MulAdd(alongs, hn::LoadU(floats, x + c), hn::LoadU(floats, of_x + c));
    hn::StoreU(hn::Mul(y, sizes), floats, of_x + c);
  }
  for (; c < channels; ++c) of_x[c] = (of_x[c] + along * x[c]) * size;
}

}  // namespace millrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(attention_forward);
HWY_EXPORT(attention_backward);
HWY_EXPORT(gelu_forward);
HWY_EXPORT(gelu_backward);
HWY_EXPORT(norm_forward);
HWY_EXPORT(norm_backward);

void short_attention_forward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                             float* out) {
  HWY_DYNAMIC_DISPATCH(attention_forward)(s, row, out);
}

void short_attention_backward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                              const ShortAttentionGradients& gradients) {
  HWY_DYNAMIC_DISPATCH(attention_backward)(s, row, gradients);
}

void gated_gelu_forward(const float* value, const float* gate, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(gelu_forward)(value, gate, count, out);
}

void gated_gelu_backward(const float* value, const float* gate, const float* of_out,
                         std::int64_t count, float* of_value, float* of_gate) {
  HWY_DYNAMIC_DISPATCH(gelu_backward)(value, gate, of_out, count, of_value, of_gate);
}

void unit_norm_forward(const float* x, const float* factor, float scale, std::int64_t channels,
                       float* out) {
  HWY_DYNAMIC_DISPATCH(norm_forward)(x, factor, scale, channels, out);
}

void unit_norm_backward(const float* x, const float* factor, const float* of_out, float scale,
                        std::int64_t channels, float* of_x, float* of_factor) {
  HWY_DYNAMIC_DISPATCH(norm_backward)(x, factor, of_out, scale, channels, of_x, of_factor);
}

}  // namespace millrace
#endif  // HWY_ONCE
