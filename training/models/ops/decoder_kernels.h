// Kernels for operations that are slow in LibTorch for short sequences: attention over a few
// tokens, gated layers and RMS norms. Plain C++ without LibTorch, compiled for each instruction
// set. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// Causal attention over the tokens of one row, and over learned keys that precede them.
struct ShortAttentionSizes {
  std::int64_t length = 0, memories = 0;
  std::int64_t heads = 0, key_heads = 0;  // query head h uses key head h % key_heads
  std::int64_t channels = 0;
  float scale = 1;  // factor of the logits

  std::int64_t keys() const { return memories + length; }
  std::int64_t stride() const { return (heads + 2 * key_heads) * channels; }
};

// Largest number of keys per token.
constexpr std::int64_t short_attention_keys = 64;

// `qkv` [length, heads + 2 * key_heads, channels]. Learned keys and values [key_heads, memories,
// channels], or null. `weights` [heads, length, keys]: attention weights.
struct ShortAttentionRow {
  const float* qkv = nullptr;
  const float* memory_keys = nullptr;
  const float* memory_values = nullptr;
  float* weights = nullptr;
};

// `out`: [length, heads, channels].
void short_attention_forward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                             float* out);
// Gradients for `of_out`, the gradient of the output. Gradients of learned keys and values are
// added to the buffers.
struct ShortAttentionGradients {
  const float* of_out = nullptr;
  float* qkv = nullptr;
  float* memory_keys = nullptr;
  float* memory_values = nullptr;
};
void short_attention_backward(const ShortAttentionSizes& s, const ShortAttentionRow& row,
                              const ShortAttentionGradients& gradients);

// out = value * gelu(gate), with an erf that is accurate to 2e-7.
void gated_gelu_forward(const float* value, const float* gate, std::int64_t count, float* out);
void gated_gelu_backward(const float* value, const float* gate, const float* of_out,
                         std::int64_t count, float* of_value, float* of_gate);

// out = x * scale / |x| * factor, for one token. |x| is clamped at 1e-12.
void unit_norm_forward(const float* x, const float* factor, float scale, std::int64_t channels,
                       float* out);
// The gradient of the factor is added to the buffer.
void unit_norm_backward(const float* x, const float* factor, const float* of_out, float scale,
                        std::int64_t channels, float* of_x, float* of_factor);

}  // namespace millrace
