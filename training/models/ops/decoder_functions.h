// Parts of decoder layers as one operation each, forward and backward, on the CPU in 32 bits:
// the same sums as LibTorch's, without its overhead for short sequences and without the tensors in
// between. Private to training/models.
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace millrace {

// Causal attention of sequences of a few tokens. `qkv` [rows, length, heads + 2 * key_heads,
// channels]: queries, keys and values side by side; head h looks at the keys of h % key_heads.
// Learned keys and values [key_heads, memories, channels] stand before the first, or are undefined.
// Returns [rows, length, heads, channels].
torch::Tensor short_attention(const torch::Tensor& qkv, const torch::Tensor& memory_keys,
                              const torch::Tensor& memory_values, std::int64_t heads, double scale);
// Whether it is for these: on the CPU, in 32 bits, and so few keys that it is sooner.
bool short_enough(const torch::Tensor& x, std::int64_t length, std::int64_t memories);

// The first half of the channels times the gelu of the second half.
torch::Tensor gated_gelu(const torch::Tensor& x);

// To length `scale` over the last dimension, times a factor [channels]; what has no length stays
// so.
torch::Tensor unit_norm(const torch::Tensor& x, const torch::Tensor& factor, double scale);

}  // namespace millrace
