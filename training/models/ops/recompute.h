// Gradient checkpointing: a part of a network keeps only its input and runs again in the backward
// pass. Private to training/models.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

namespace millrace {

// Computes part(x, by); `by` may be undefined. The second run uses the same random numbers and the
// same precision. Without gradients the part runs once.
using NetworkPart = std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& by)>;
torch::Tensor recomputed(const NetworkPart& part, const torch::Tensor& x, const torch::Tensor& by);

// Runs a part on groups of `rows_at_once` rows of x and concatenates the results along the first
// dimension. Only one group's activations are in memory at a time; the backward pass recomputes
// them from x. `parameters`: all parameters that the part uses; each gets its gradient once. With a
// single group, or without gradients, nothing runs twice.
using GroupPart = std::function<torch::Tensor(const torch::Tensor& rows, std::int64_t begin)>;
torch::Tensor in_groups(const GroupPart& part, const torch::Tensor& x, std::int64_t rows_at_once,
                        const std::vector<torch::Tensor>& parameters);

}  // namespace millrace
