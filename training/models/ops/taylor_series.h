// The feature map of linear attention with the second-order Taylor series of exp. Private to
// training/models.
#pragma once

#include <millrace/training/device/torch_api.h>

#include <cmath>
#include <vector>

namespace millrace {

// [1, x, x x^T / sqrt 2]: the dot product of two feature vectors is 1 + qk + (qk)^2 / 2.
inline torch::Tensor taylor_series(const torch::Tensor& x) {
  const torch::Tensor rows = x.reshape({-1, x.size(-1)});
  const torch::Tensor ones = torch::ones({rows.size(0), 1}, rows.options());
  const torch::Tensor squares = torch::einsum("bi,bj->bij", {rows, rows}) * std::sqrt(0.5);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = -1;
  return torch::cat({ones, rows, squares.flatten(1)}, 1).reshape(shape);
}

}  // namespace millrace
