// Linear layers by products of our own, on the CPU in 32 bits. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

// x [..., in] * weight [out, in] transposed, plus a bias [out] if there is one: torch::linear's
// sums in another order, the same for any number of threads. LibTorch's own where it is sooner (few
// rows) or where these products do not apply: other types, other devices, mixed precision.
torch::Tensor linear_product(const torch::Tensor& x, const torch::Tensor& weight,
                             const torch::Tensor& bias = {});

}  // namespace millrace
