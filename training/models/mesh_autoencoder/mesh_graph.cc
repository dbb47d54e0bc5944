#include "mesh_graph.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/quantizer.h>

namespace millrace {

RowLists::Lists RowLists::lists(const torch::Tensor& members, const torch::Tensor& of,
                                std::int64_t count) {
  const torch::Tensor counts = torch::bincount(of, {}, count);
  const torch::Tensor ends = torch::cat({torch::zeros({1}, counts.options()), counts.cumsum(0)});
  const bool sorted = of.numel() < 2 || (of.diff() >= 0).all().item<bool>();
  if (sorted) return {.members = members.contiguous(), .ends = ends};
  const torch::Tensor order =
      std::get<1>(of.sort(std::optional<bool>(true), /*dim=*/0, /*descending=*/false));
  return {.members = members.index_select(0, order), .ends = ends};
}

RowLists::RowLists(const torch::Tensor& from, const torch::Tensor& to, std::int64_t rows,
                   std::int64_t sums)
    : by_sum_(std::make_shared<const Lists>(lists(from, to, sums))),
      by_row_(std::make_shared<const Lists>(lists(to, from, rows))),
      counts_(by_sum_->ends.diff().to(torch::kFloat32)) {}

// A sum of listed rows is an embedding_bag. The gradient is an embedding_bag over the transposed
// lists.
class RowLists::Sum : public torch::autograd::Function<RowLists::Sum> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& members, const torch::Tensor& ends,
                               const torch::Tensor& back_members, const torch::Tensor& back_ends) {
    context->save_for_backward({back_members, back_ends});
    return bag(x, members, ends);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {bag(gradients[0].contiguous(), saved[0], saved[1]), torch::Tensor(), torch::Tensor(),
            torch::Tensor(), torch::Tensor()};
  }

 private:
  static torch::Tensor bag(const torch::Tensor& x, const torch::Tensor& members,
                           const torch::Tensor& ends) {
    constexpr int sum_mode = 0;
    return std::get<0>(torch::embedding_bag(x, members, ends, /*scale_grad_by_freq=*/false,
                                            sum_mode, /*sparse=*/false, {},
                                            /*include_last_offset=*/true));
  }
};

torch::Tensor RowLists::sum(const torch::Tensor& x) const {
  return Sum::apply(x, by_sum_->members, by_sum_->ends, by_row_->members, by_row_->ends);
}

torch::Tensor RowLists::mean(const torch::Tensor& x, double least_count) const {
  return sum(x) / counts_.clamp_min(least_count).unsqueeze(-1).to(x.scalar_type());
}

SageConvImpl::SageConvImpl(std::int64_t in, std::int64_t out, const SageConvConfig& config)
    : config_(config) {
  using torch::nn::LinearOptions;
  if (config.project) project_ = register_module("lin", torch::nn::Linear(in, in));
  left_ = register_module("lin_l", torch::nn::Linear(LinearOptions(in, out).bias(config.bias)));
  if (config.root_weight) {
    right_ = register_module("lin_r", torch::nn::Linear(LinearOptions(in, out).bias(false)));
  }
}

torch::Tensor SageConvImpl::messages_of(const torch::Tensor& x) {
  return project_ ? project(project_, x).relu() : x;
}

torch::Tensor SageConvImpl::forward(const torch::Tensor& x, const RowLists& neighbours) {
  return combined(
      config_.aggr == "mean" ? neighbours.mean(messages_of(x)) : neighbours.sum(messages_of(x)), x);
}

torch::Tensor SageConvImpl::forward_reference(const torch::Tensor& x, const torch::Tensor& from,
                                              const torch::Tensor& to) {
  const torch::Tensor messages = messages_of(x).index_select(0, from);
  torch::Tensor aggregated = torch::zeros({x.size(0), messages.size(1)}, x.options())
                                 .scatter_add(0, to.unsqueeze(1).expand_as(messages), messages);
  if (config_.aggr == "mean") {
    const torch::Tensor count = torch::bincount(to, {}, x.size(0)).to(x.scalar_type()).clamp_min(1);
    aggregated = aggregated / count.unsqueeze(1).expand_as(aggregated);
  }
  return combined(aggregated, x);
}

torch::Tensor SageConvImpl::combined(const torch::Tensor& aggregated, const torch::Tensor& x) {
  torch::Tensor y = project(left_, aggregated);
  if (right_) y = y + project(right_, x);
  if (!config_.normalize) return y;
  return torch::nn::functional::normalize(y, torch::nn::functional::NormalizeFuncOptions().dim(-1));
}

}  // namespace millrace
