// Attention in which every token sees a few others, those in a table, and no table of all pairs is
// ever made: what NUWA's videos need, where a token sees its neighbours in space and time.
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

// Which places of a sequence each token of a video sees, int64 [tokens, 1 + kernel]: the first
// place of the sequence, which is before the video, then its neighbours, of which none comes later
// in any direction, itself last. -1: beyond the border.
torch::Tensor causal_neighbours(const std::array<std::int64_t, 3>& video,
                                const std::array<std::int64_t, 3>& kernel,
                                const std::array<std::int64_t, 3>& dilation);

// x [batch, tokens, heads, channels] by those that the table [tokens, seen] names of y [batch,
// places, heads, channels]: [batch, tokens, heads, seen]. Where it names none, the least float.
torch::Tensor nearby_logits(const torch::Tensor& x, const torch::Tensor& y,
                            const torch::Tensor& table);

// Their weighted sum: [batch, tokens, heads, channels].
torch::Tensor nearby_sum(const torch::Tensor& weights, const torch::Tensor& y,
                         const torch::Tensor& table);

// The same by LibTorch's operators, which gather what is seen: for GPUs and other types.
torch::Tensor gathered_logits(const torch::Tensor& x, const torch::Tensor& y,
                              const torch::Tensor& table);
torch::Tensor gathered_sum(const torch::Tensor& weights, const torch::Tensor& y,
                           const torch::Tensor& table);

}  // namespace millrace
