// Trades time for memory: a part of a network that keeps nothing but its input, and runs again when
// the backward pass comes to it. Private to training/models.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

namespace millrace {

// part(x, by); `by` may be undefined. The same numbers are drawn, in the same precision, when it
// runs again. Without gradients it just runs.
using NetworkPart = std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& by)>;
torch::Tensor recomputed(const NetworkPart& part, const torch::Tensor& x, const torch::Tensor& by);

// A part that runs on some rows of x at a time, from `begin` on, and gives tensors whose first
// dimensions are joined. Only one group's activations are there at a time: all but x is found again
// in the backward pass. `parameters`: all that the part uses; each gets its gradient once. With one
// group, or without gradients, nothing runs twice.
using GroupPart = std::function<torch::Tensor(const torch::Tensor& rows, std::int64_t begin)>;
torch::Tensor in_groups(const GroupPart& part, const torch::Tensor& x, std::int64_t rows_at_once,
                        const std::vector<torch::Tensor>& parameters);

}  // namespace millrace
