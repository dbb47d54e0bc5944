#include "bias_table.h"

#include <millrace/training/device/torch_api.h>

#include <ATen/Parallel.h>

namespace millrace {

namespace {

// For float32 on the CPU. torch::embedding gives the same values, but returns heads last, where
// attention needs them first, and its backward pass adds a few numbers per call.
class LookUp : public torch::autograd::Function<LookUp> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& table, const torch::Tensor& which) {
    const std::int64_t heads = table.size(1), batch = which.size(0);
    const std::int64_t pairs = which.size(1) * which.size(2);
    context->save_for_backward({which});
    context->saved_data["rows"] = table.size(0);
    const torch::Tensor by_head = table.t().contiguous();
    torch::Tensor bias =
        torch::empty({batch, heads, which.size(1), which.size(2)}, table.options());
    const auto* from = by_head.const_data_ptr<float>();
    const auto* index = which.const_data_ptr<std::int64_t>();
    auto* to = bias.mutable_data_ptr<float>();
    at::parallel_for(0, batch * heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const float* values = from + i % heads * table.size(0);
        const std::int64_t* at = index + i / heads * pairs;
        float* row = to + i * pairs;
        for (std::int64_t k = 0; k < pairs; ++k) row[k] = values[at[k]];
      }
    });
    return bias;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::Tensor which = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    const std::int64_t heads = gradient.size(1), batch = which.size(0);
    const std::int64_t pairs = which.size(1) * which.size(2);
    const std::int64_t rows = context->saved_data["rows"].toInt();
    torch::Tensor by_head = torch::zeros({heads, rows}, gradient.options());
    const auto* from = gradient.const_data_ptr<float>();
    const auto* index = which.const_data_ptr<std::int64_t>();
    auto* to = by_head.mutable_data_ptr<float>();
    at::parallel_for(0, heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = begin; head < end; ++head) {
        float* sums = to + head * rows;
        for (std::int64_t b = 0; b < batch; ++b) {
          const float* values = from + (b * heads + head) * pairs;
          const std::int64_t* at = index + b * pairs;
          for (std::int64_t k = 0; k < pairs; ++k) sums[at[k]] += values[k];
        }
      }
    });
    return {by_head.t(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor look_up_bias(const torch::Tensor& table, const torch::Tensor& which) {
  if (table.is_cpu() && table.scalar_type() == torch::kFloat32) {
    return LookUp::apply(table, which.contiguous());
  }
  return torch::embedding(table, which.to(table.device())).permute({0, 3, 1, 2});
}

}  // namespace millrace
