#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/optim/optimizer.h>

#include <algorithm>
#include <cmath>

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {

OptimizerKind optimizer_kind(std::string_view name) {
  if (name == "adam") return OptimizerKind::adam;
  if (name == "adamw") return OptimizerKind::adamw;
  if (name == "lion") return OptimizerKind::lion;
  throw Error(c10::str("there is no optimizer '", name, "'; there are adam, adamw and lion"))
      .kind(ErrorKind::usage);
}

Optimizer::Optimizer(std::vector<torch::Tensor> parameters, const OptimizerOptions& options)
    : options_(options) {
  std::erase_if(parameters, [](const torch::Tensor& p) { return !p.requires_grad(); });
  if (parameters.empty()) {
    throw Error("an optimizer needs at least one parameter").kind(ErrorKind::usage);
  }
  const bool separate = options.decay_matrices_only && options.weight_decay > 0;
  Group decaying{.parameters = {}, .lr = options.lr, .weight_decay = options.weight_decay};
  Group steady{.parameters = {}, .lr = options.lr, .weight_decay = 0};
  for (torch::Tensor& parameter : parameters) {
    Group& group = separate && parameter.dim() < 2 ? steady : decaying;
    group.parameters.push_back(std::move(parameter));
  }
  for (Group* group : {&decaying, &steady}) {
    if (group->parameters.empty()) continue;
    for (const torch::Tensor& p : group->parameters) parameters_.push_back(p);
    groups_.push_back(std::move(*group));
  }
  moments_.resize(parameters_.size());
}

void Optimizer::zero_grad() {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

double Optimizer::clip(double max_norm) {
  if (!options_.clip_each_group || groups_.size() == 1) {
    return torch::nn::utils::clip_grad_norm_(parameters_, max_norm);
  }
  double squares = 0;
  for (Group& group : groups_) {
    const double norm = torch::nn::utils::clip_grad_norm_(group.parameters, max_norm);
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

void Optimizer::set_lr(double lr) {
  for (Group& group : groups_) group.lr = lr;
}

void Optimizer::step(double factor) {
  torch::NoGradGuard no_grad;
  std::size_t first = 0;
  for (const Group& group : groups_) {
    if (options_.kind == OptimizerKind::lion) {
      step_lion(group, first, group.lr * factor);
    } else if (options_.as_in_python) {
      step_adam_as_in_python(group, first, group.lr * factor);
    } else {
      step_adam(group, first, group.lr * factor);
    }
    first += group.parameters.size();
  }
}

void Optimizer::step_adam(const Group& group, std::size_t first, double lr) {
  std::vector<torch::Tensor> parameters, gradients, averages, squares, steps;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const torch::Tensor& parameter = group.parameters[i];
    torch::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    Moments& moments = moments_[first + i];
    if (!moments.step.defined()) {
      moments = {torch::zeros({}, parameter.options().dtype(torch::kFloat32).requires_grad(false)),
                 torch::zeros_like(parameter), torch::zeros_like(parameter)};
    }
    moments.step += 1;
    // The fused kernel walks all of them side by side, in memory order.
    if (gradient.strides() != parameter.strides()) {
      gradient = torch::empty_like(parameter).copy_(gradient);
    }
    parameters.push_back(parameter);
    gradients.push_back(gradient);
    averages.push_back(moments.average);
    squares.push_back(moments.square);
    steps.push_back(moments.step);
  }
  if (parameters.empty()) return;
  const auto [beta1, beta2] = options_.betas;
  if (options_.kind == OptimizerKind::adamw) {
    at::_fused_adamw_(parameters, gradients, averages, squares, {}, steps, lr, beta1, beta2,
                      group.weight_decay, options_.eps, false, false);
  } else {
    at::_fused_adam_(parameters, gradients, averages, squares, {}, steps, lr, beta1, beta2,
                     group.weight_decay, options_.eps, false, false);
  }
}

void Optimizer::step_adam_as_in_python(const Group& group, std::size_t first, double lr) {
  const auto [beta1, beta2] = options_.betas;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    torch::Tensor parameter = group.parameters[i];
    torch::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    Moments& moments = moments_[first + i];
    if (!moments.step.defined()) {
      moments = {torch::zeros({}), torch::zeros_like(parameter), torch::zeros_like(parameter)};
    }
    moments.step += 1;
    if (options_.kind == OptimizerKind::adamw) {
      parameter.mul_(1 - lr * group.weight_decay);
    } else if (group.weight_decay != 0) {
      gradient = gradient.add(parameter, group.weight_decay);
    }
    moments.average.lerp_(gradient, 1 - beta1);
    moments.square.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
    const double steps = moments.step.item<double>();
    const double correction1 = 1 - std::pow(beta1, steps), correction2 = 1 - std::pow(beta2, steps);
    const torch::Tensor root = (moments.square.sqrt() / std::sqrt(correction2)).add_(options_.eps);
    parameter.addcdiv_(moments.average, root, -(lr / correction1));
  }
}

void Optimizer::step_lion(const Group& group, std::size_t first, double lr) {
  const auto [beta1, beta2] = options_.betas;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    torch::Tensor parameter = group.parameters[i];
    const torch::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    torch::Tensor& average = moments_[first + i].average;
    if (!average.defined()) average = torch::zeros_like(parameter);
    if (group.weight_decay != 0) parameter.mul_(1 - lr * group.weight_decay);
    parameter.sub_((average * beta1).add_(gradient, 1 - beta1).sign_(), lr);
    average.mul_(beta2).add_(gradient, 1 - beta2);
  }
}

Value Optimizer::group_value(const Group& group, std::size_t first, double factor) const {
  Dict value{{"lr", group.lr * factor},
             {"betas", Tuple{{options_.betas[0], options_.betas[1]}}},
             {"weight_decay", group.weight_decay}};
  if (options_.kind != OptimizerKind::lion) {
    value.set("eps", options_.eps);
    value.set("decoupled_weight_decay", options_.kind == OptimizerKind::adamw);
    for (const char* flag : {"amsgrad", "maximize", "capturable", "differentiable"}) {
      value.set(flag, false);
    }
    for (const char* choice : {"foreach", "fused"}) value.set(choice, Value());
  }
  List numbers;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    numbers.items.emplace_back(static_cast<std::int64_t>(first + i));
  }
  value.set("params", std::move(numbers));
  return value;
}

Value Optimizer::state(double factor) const {
  Dict state;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const Moments& moments = moments_[i];
    if (!moments.average.defined()) continue;
    Dict entry;
    if (moments.step.defined()) entry.set("step", to_value(moments.step));
    entry.set("exp_avg", to_value(moments.average));
    if (moments.square.defined()) entry.set("exp_avg_sq", to_value(moments.square));
    state.set(static_cast<std::int64_t>(i), std::move(entry));
  }
  List groups;
  std::size_t first = 0;
  for (const Group& group : groups_) {
    groups.items.push_back(group_value(group, first, factor));
    first += group.parameters.size();
  }
  return Dict{{"state", std::move(state)}, {"param_groups", std::move(groups)}};
}

void Optimizer::load(const Value& state, const std::string& source) {
  auto fail = [&](const std::string& why) {
    throw Error(why)
        .at(source)
        .stage("optimizer")
        .hint("Give the configuration that the checkpoint was made with");
  };
  // A group may number its parameters in any way; their order is what counts.
  std::vector<std::int64_t> numbers;
  const auto& groups = state["param_groups"].as_list();
  if (groups.size() != groups_.size()) {
    fail(c10::str("has ", groups.size(), " groups of parameters, not ", groups_.size()));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& members = groups[i]["params"].as_list();
    if (members.size() != groups_[i].parameters.size()) {
      fail(c10::str("has ", members.size(), " parameters in group ", i, ", not ",
                    groups_[i].parameters.size()));
    }
    for (const Value& number : members) numbers.push_back(number.as_int());
  }
  std::vector<Moments> loaded(moments_.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Value* entry = state["state"].as_dict().find(numbers[i]);
    if (entry == nullptr) continue;  // it never had a gradient
    auto take = [&](const char* name) {
      const torch::Tensor tensor = as_tensor((*entry)[name]);
      if (tensor.sizes() != parameters_[i].sizes()) {
        fail(c10::str(name, " of parameter ", i, " is ", tensor.sizes(), ", not ",
                      parameters_[i].sizes()));
      }
      return torch::empty_like(parameters_[i]).copy_(tensor).detach();
    };
    loaded[i].average = take("exp_avg");
    if (options_.kind == OptimizerKind::lion) continue;
    loaded[i].square = take("exp_avg_sq");
    const Value& step = (*entry)["step"];  // a number in the torch of old
    loaded[i].step = is_tensor(step) ? as_tensor(step).to(torch::kFloat32).clone().reshape({})
                                     : torch::tensor(static_cast<float>(step.as_double()));
    loaded[i].step = loaded[i].step.to(parameters_[i].device());
  }
  moments_ = std::move(loaded);
}

}  // namespace millrace
