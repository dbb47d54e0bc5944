// Linear layers with our own matrix product, for float32 on the CPU. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

// x [..., in] * weight [out, in] transposed, plus an optional bias [out]. Equal to torch::linear up
// to rounding; the result does not depend on the number of threads. Calls torch::linear where it is
// faster (few rows) or where this product does not apply: other types, other devices, autocast.
torch::Tensor linear_product(const torch::Tensor& x, const torch::Tensor& weight,
                             const torch::Tensor& bias = {});

}  // namespace millrace
