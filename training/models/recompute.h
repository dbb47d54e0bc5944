// Trades time for memory: a part of a network that keeps nothing but its input, and runs again when
// the backward pass comes to it. Private to training/models.
#pragma once

#include <functional>

#include <torch/types.h>

namespace millrace {

// part(x, by); `by` may be undefined. The same numbers are drawn, in the same precision, when it
// runs again. Without gradients it just runs.
using NetworkPart = std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& by)>;
torch::Tensor recomputed(const NetworkPart& part, const torch::Tensor& x, const torch::Tensor& by);

}  // namespace millrace
