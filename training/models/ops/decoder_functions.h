// Parts of decoder layers as one autograd function each, for float32 on the CPU. Equal to
// LibTorch's operators up to rounding, but without their overhead for short sequences and without
// intermediate tensors. Private to training/models.
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace millrace {

// Causal attention of short sequences. `qkv` [rows, length, heads + 2 * key_heads, channels]:
// queries, keys and values, concatenated. Query head h uses key head h % key_heads. Learned keys
// and values [key_heads, memories, channels] precede the first token, or are undefined. Returns
// [rows, length, heads, channels].
torch::Tensor short_attention(const torch::Tensor& qkv, const torch::Tensor& memory_keys,
                              const torch::Tensor& memory_values, std::int64_t heads, double scale);
// Whether short_attention() applies and is faster: float32 on the CPU and few keys.
bool short_enough(const torch::Tensor& x, std::int64_t length, std::int64_t memories);

// GEGLU: the first half of the channels times the GELU of the second half.
torch::Tensor gated_gelu(const torch::Tensor& x);

// Normalizes the last dimension to length `scale` and multiplies by `factor` [channels]. Zero
// vectors stay zero.
torch::Tensor unit_norm(const torch::Tensor& x, const torch::Tensor& factor, double scale);

}  // namespace millrace
