// What LibTorch takes long for in a decoder of short sequences: attention over a few tokens, gated
// layers, and norms that take the length alone. Arithmetic alone, without LibTorch, compiled for
// each instruction set. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// Tokens of one row that each look at those up to themselves, and at learned ones before them.
struct ShortAttentionSizes {
  std::int64_t length = 0, memories = 0;
  std::int64_t heads = 0, key_heads = 0;  // head h looks at the keys of h % key_heads
  std::int64_t channels = 0;
  float scale = 1;  // of the products of queries and keys

  std::int64_t keys() const { return memories + length; }
  std::int64_t stride() const { return (heads + 2 * key_heads) * channels; }
};

// Most that a token may look at.
constexpr std::int64_t short_attention_keys = 64;

// `qkv` [length, heads of queries, keys and values, channels]; learned ones [key_heads, memories,
// channels], or null. `weights` [heads, length, keys]: how much a token takes of each.
struct ShortAttentionRow {
  const float* qkv = nullptr;
  const float* memory_keys = nullptr;
  const float* memory_values = nullptr;
  float* weights = nullptr;
};

// `out` [length, heads, channels]
void short_attention_forward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                             float* out);
// Of `of_out`; what the learned ones get is added to what is there.
struct ShortAttentionGradients {
  const float* of_out = nullptr;
  float* qkv = nullptr;
  float* memory_keys = nullptr;
  float* memory_values = nullptr;
};
void short_attention_backward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                              const ShortAttentionGradients& gradients);

// out = value * gelu(gate), exact (by erf to 2e-7).
void gated_gelu_forward(const float* value, const float* gate, std::int64_t count, float* out);
void gated_gelu_backward(const float* value, const float* gate, const float* of_out,
                         std::int64_t count, float* of_value, float* of_gate);

// out = x * scale / |x| * factor, for one token; a length below 1e-12 counts as that.
void unit_norm_forward(const float* x, const float* factor, float scale, std::int64_t channels,
                       float* out);
// What the factor gets is added to what is there.
void unit_norm_backward(const float* x, const float* factor, const float* of_out, float scale,
                        std::int64_t channels, float* of_x, float* of_factor);

}  // namespace millrace
