// Attention of every token to a few other tokens, listed in a table. No matrix of all pairs is
// allocated. NUWA uses it for videos, where a token attends to its neighbours in space and time.
//
//   const torch::Tensor table = causal_neighbours({10, 8, 8}, {3, 3, 3}, {1, 1, 1});
//   torch::Tensor weights = nearby_logits(q, k, table).softmax(-1);
//   torch::Tensor out = nearby_sum(weights, v, table);
//
// Private to training/models.
#pragma once

#include <array>
#include <cstdint>

#include <torch/types.h>

namespace millrace {

// For each token of a video, the positions it attends to, int64 [tokens, 1 + kernel]: position 0
// (the start token before the video), then its causal neighbours, the token itself last. No
// neighbour is later in any dimension. -1: outside the video.
torch::Tensor causal_neighbours(const std::array<std::int64_t, 3>& video,
                                const std::array<std::int64_t, 3>& kernel,
                                const std::array<std::int64_t, 3>& dilation);

// Products of x [batch, tokens, heads, channels] with the positions of y [batch, positions, heads,
// channels] that the table [tokens, seen] lists: [batch, tokens, heads, seen]. Entries of -1 get
// the lowest float.
torch::Tensor nearby_logits(const torch::Tensor& x, const torch::Tensor& y,
                            const torch::Tensor& table);

// Weighted sum of the listed positions: [batch, tokens, heads, channels].
torch::Tensor nearby_sum(const torch::Tensor& weights, const torch::Tensor& y,
                         const torch::Tensor& table);

// The same with LibTorch's operators, which gather the listed positions: for GPUs and other types.
torch::Tensor gathered_logits(const torch::Tensor& x, const torch::Tensor& y,
                              const torch::Tensor& table);
torch::Tensor gathered_sum(const torch::Tensor& weights, const torch::Tensor& y,
                           const torch::Tensor& table);

}  // namespace millrace
