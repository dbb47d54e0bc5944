#include "recompute.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>

namespace millrace {

namespace {

// All random generators that a part on `device` may use.
std::vector<at::Generator> generators_of(const torch::Device& device) {
  std::vector<at::Generator> all{at::detail::getDefaultCPUGenerator()};
  if (device.is_cuda()) all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

std::vector<torch::Tensor> states_of(const torch::Device& device) {
  std::vector<torch::Tensor> states;
  for (const at::Generator& generator : generators_of(device)) {
    states.push_back(generator.get_state());
  }
  return states;
}

void set_states(const torch::Device& device, const std::vector<torch::Tensor>& states) {
  std::vector<at::Generator> all = generators_of(device);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].set_state(states[i]);
}

// RAII guard: restores the random generators and autocast to their state when a part first ran.
class ReplayContext {
 public:
  ReplayContext(const torch::Device& device, const std::vector<torch::Tensor>& generators,
                bool autocast)
      : device_(device),
        generators_(states_of(device)),
        autocast_(at::autocast::is_autocast_enabled(device.type())) {
    set_states(device, generators);
    at::autocast::set_autocast_enabled(device.type(), autocast);
  }
  ~ReplayContext() {
    at::autocast::set_autocast_enabled(device_.type(), autocast_);
    set_states(device_, generators_);
  }
  ReplayContext(const ReplayContext&) = delete;
  ReplayContext& operator=(const ReplayContext&) = delete;

 private:
  torch::Device device_;
  std::vector<torch::Tensor> generators_;
  bool autocast_;
};

// What is needed to run a part again with the same result.
struct Recording : torch::CustomClassHolder {
  NetworkPart part;
  std::vector<torch::Tensor> generators;
  bool autocast = false;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const NetworkPart& part,
                               const torch::Tensor& x, const torch::Tensor& by) {
    auto recording = c10::make_intrusive<Recording>();
    recording->part = part;
    recording->generators = states_of(x.device());
    recording->autocast = at::autocast::is_autocast_enabled(x.device().type());
    context->saved_data["recording"] = c10::IValue::make_capsule(std::move(recording));
    context->save_for_backward({x, by});
    return part(x, by);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["recording"].toCapsule();
    const auto& recording = static_cast<const Recording&>(*capsule);
    torch::autograd::variable_list inputs = context->get_saved_variables();
    for (torch::Tensor& input : inputs) {
      if (input.defined()) input = input.detach().set_requires_grad(input.requires_grad());
    }
    torch::Tensor result;
    {
      const ReplayContext replay(inputs[0].device(), recording.generators, recording.autocast);
      torch::AutoGradMode with_gradients(true);
      result = recording.part(inputs[0], inputs[1]);
    }
    // Accumulates the gradients of the part's parameters; the gradients of the inputs are returned.
    torch::autograd::backward({result}, {gradients[0]});
    torch::autograd::variable_list found{torch::Tensor()};  // of `part`, which is not a tensor
    for (const torch::Tensor& input : inputs) {
      found.push_back(input.defined() ? input.grad() : torch::Tensor());
    }
    return found;
  }
};

// What is needed to run all groups again.
struct GroupRecording : torch::CustomClassHolder {
  GroupPart part;
  std::int64_t rows_at_once = 1;
  std::vector<torch::Tensor> parameters;
  std::vector<std::vector<torch::Tensor>> generators;  // states before each group
  std::vector<std::int64_t> sizes;                     // rows of each result
  bool autocast = false;
};

// Calls visit(group, first row, rows) for each group.
template <class Visit>
void for_each_group(const torch::Tensor& x, std::int64_t rows_at_once, const Visit& visit) {
  std::size_t group = 0;
  for (std::int64_t begin = 0; begin < x.size(0); begin += rows_at_once) {
    visit(group++, begin, x.narrow(0, begin, std::min(rows_at_once, x.size(0) - begin)));
  }
}

torch::Tensor flat(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> pieces;
  for (const torch::Tensor& one : tensors) pieces.push_back(one.flatten());
  return pieces.empty() ? torch::empty({0}) : torch::cat(pieces);
}

// The parameters are also passed as one flat tensor, which carries their gradients, because an
// autograd function cannot take a list of tensors.
class RecomputeGroups : public torch::autograd::Function<RecomputeGroups> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const GroupPart& part,
                               std::int64_t rows_at_once,
                               const std::vector<torch::Tensor>& parameters, const torch::Tensor& x,
                               const torch::Tensor& /*flat_parameters*/) {
    auto recording = c10::make_intrusive<GroupRecording>();
    recording->part = part;
    recording->rows_at_once = rows_at_once;
    recording->parameters = parameters;
    recording->autocast = at::autocast::is_autocast_enabled(x.device().type());
    std::vector<torch::Tensor> results;
    for_each_group(x, rows_at_once,
                   [&](std::size_t, std::int64_t begin, const torch::Tensor& rows) {
                     recording->generators.push_back(states_of(x.device()));
                     results.push_back(part(rows, begin));
                     recording->sizes.push_back(results.back().size(0));
                   });
    context->save_for_backward({x});
    context->saved_data["recording"] = c10::IValue::make_capsule(std::move(recording));
    return torch::cat(results);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["recording"].toCapsule();
    const auto& recording = static_cast<const GroupRecording&>(*capsule);
    const torch::Tensor x = context->get_saved_variables()[0];
    const std::vector<torch::Tensor> of_results = gradients[0].split_with_sizes(recording.sizes, 0);
    std::vector<torch::Tensor> sums;
    for (const torch::Tensor& one : recording.parameters) sums.push_back(torch::zeros_like(one));
    torch::Tensor of_x;
    if (x.requires_grad()) of_x = torch::zeros_like(x);
    for_each_group(x.detach(), recording.rows_at_once,
                   [&](std::size_t group, std::int64_t begin, const torch::Tensor& rows) {
                     const std::vector<torch::Tensor> found = run_again(
                         recording, group, begin, rows.detach().set_requires_grad(of_x.defined()),
                         of_results[group]);
                     for (std::size_t i = 0; i < sums.size(); ++i) {
                       if (found[i].defined()) sums[i].add_(found[i]);
                     }
                     if (of_x.defined()) of_x.narrow(0, begin, rows.size(0)).copy_(found.back());
                   });
    return {torch::Tensor(), torch::Tensor(), torch::Tensor(), of_x, flat(sums)};
  }

 private:
  // Gradients of the parameters, followed by the gradient of the rows if they require one.
  static std::vector<torch::Tensor> run_again(const GroupRecording& recording, std::size_t group,
                                              std::int64_t begin, const torch::Tensor& rows,
                                              const torch::Tensor& of_result) {
    const ReplayContext replay(rows.device(), recording.generators[group], recording.autocast);
    torch::AutoGradMode with_gradients(true);
    std::vector<torch::Tensor> inputs = recording.parameters;
    if (rows.requires_grad()) inputs.push_back(rows);
    return torch::autograd::grad({recording.part(rows, begin)}, inputs, {of_result},
                                 /*retain_graph=*/false, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  }
};

}  // namespace

torch::Tensor in_groups(const GroupPart& part, const torch::Tensor& x, std::int64_t rows_at_once,
                        const std::vector<torch::Tensor>& parameters) {
  if (rows_at_once >= x.size(0)) return part(x, 0);
  if (torch::GradMode::is_enabled()) {
    return RecomputeGroups::apply(part, rows_at_once, parameters, x, flat(parameters));
  }
  std::vector<torch::Tensor> results;
  for_each_group(x, rows_at_once, [&](std::size_t, std::int64_t begin, const torch::Tensor& rows) {
    results.push_back(part(rows, begin));
  });
  return torch::cat(results);
}

torch::Tensor recomputed(const NetworkPart& part, const torch::Tensor& x, const torch::Tensor& by) {
  if (!torch::GradMode::is_enabled() || !x.requires_grad()) return part(x, by);
  if (by.defined()) return Recompute::apply(part, x, by);
  // An autograd function cannot take an undefined tensor.
  const NetworkPart alone = [part](const torch::Tensor& in, const torch::Tensor&) {
    return part(in, {});
  };
  return Recompute::apply(alone, x, torch::empty({0}, x.options()));
}

}  // namespace millrace
