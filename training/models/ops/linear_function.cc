#include "linear_function.h"

#include "matrix_product.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

namespace millrace {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// With fewer rows, packing the other matrix takes as long as the product.
constexpr std::int64_t fewest_rows = 64;

MatrixView view_of(const torch::Tensor& matrix, bool transposed) {
  return {
      .data = matrix.const_data_ptr<float>(), .stride = matrix.size(1), .transposed = transposed};
}

// All threads pack the right matrix first, then all multiply.
torch::Tensor multiplied(MatrixProduct product, const torch::TensorOptions& options) {
  torch::Tensor out = torch::empty({product.rows, product.columns}, options);
  torch::Tensor room = torch::empty({packed_size(product)}, options);
  float* packed = room.mutable_data_ptr<float>();
  product.out = out.mutable_data_ptr<float>();
  at::parallel_for(0, depth_blocks(product), 1, [&](std::int64_t begin, std::int64_t end) {
    pack_right(product, begin, end, packed);
  });
  constexpr std::int64_t each = product_rows_at_once;
  const std::int64_t strips = (product.rows + each - 1) / each;
  at::parallel_for(0, strips, 1, [&](std::int64_t begin, std::int64_t end) {
    multiply_rows(product, packed, begin * each, std::min(end * each, product.rows));
  });
  return out;
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  // `bias` has 0 elements if there is no bias.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias) {
    const torch::Tensor in = x.reshape({-1, weight.size(1)}).contiguous();
    const torch::Tensor matrix = weight.contiguous(), added = bias.contiguous();
    context->save_for_backward({in, matrix});
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return multiplied({.rows = in.size(0),
                       .columns = weight.size(0),
                       .depth = weight.size(1),
                       .left = view_of(in, false),
                       .right = view_of(matrix, true),
                       .bias = added.numel() > 0 ? added.const_data_ptr<float>() : nullptr},
                      x.options())
        .view(shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &in = saved[0], &weight = saved[1];
    const torch::Tensor given = gradients[0].reshape({-1, weight.size(0)}).contiguous();
    variable_list found(3);
    if (context->needs_input_grad(0)) {
      std::vector<std::int64_t> shape = gradients[0].sizes().vec();
      shape.back() = weight.size(1);
      found[0] = multiplied({.rows = given.size(0),
                             .columns = weight.size(1),
                             .depth = weight.size(0),
                             .left = view_of(given, false),
                             .right = view_of(weight, false)},
                            given.options())
                     .view(shape);
    }
    if (context->needs_input_grad(1)) {
      found[1] = multiplied({.rows = weight.size(0),
                             .columns = weight.size(1),
                             .depth = given.size(0),
                             .left = view_of(given, true),
                             .right = view_of(in, false)},
                            given.options());
    }
    if (context->needs_input_grad(2)) found[2] = given.sum(0);
    return found;
  }
};

bool is_float32_on_cpu(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat32;
}

}  // namespace

torch::Tensor linear_product(const torch::Tensor& x, const torch::Tensor& weight,
                             const torch::Tensor& bias) {
  const bool ours = is_float32_on_cpu(x) && is_float32_on_cpu(weight) && weight.numel() > 0 &&
                    x.numel() / weight.size(1) >= fewest_rows &&
                    !at::autocast::is_autocast_enabled(at::kCPU);
  if (!ours) return torch::linear(x, weight, bias);
  return LinearFunction::apply(x, weight,
                               bias.defined() ? bias : torch::empty({0}, weight.options()));
}

}  // namespace millrace
