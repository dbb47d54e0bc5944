#include "recompute.h"

#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

namespace millrace {

namespace {

// All generators that a part on `device` may draw from.
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

// What a part needs to run again as it ran.
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
    const torch::Device device = inputs[0].device();
    const std::vector<torch::Tensor> now = states_of(device);
    const bool autocast = at::autocast::is_autocast_enabled(device.type());
    set_states(device, recording.generators);
    at::autocast::set_autocast_enabled(device.type(), recording.autocast);
    torch::Tensor result;
    {
      torch::AutoGradMode with_gradients(true);
      result = recording.part(inputs[0], inputs[1]);
    }
    at::autocast::set_autocast_enabled(device.type(), autocast);
    set_states(device, now);
    // The parameters of the part get their gradients here, the inputs from here.
    torch::autograd::backward({result}, {gradients[0]});
    torch::autograd::variable_list found{torch::Tensor()};  // of `part`, which has none
    for (const torch::Tensor& input : inputs) {
      found.push_back(input.defined() ? input.grad() : torch::Tensor());
    }
    return found;
  }
};

}  // namespace

torch::Tensor recomputed(const NetworkPart& part, const torch::Tensor& x, const torch::Tensor& by) {
  if (!torch::GradMode::is_enabled() || !x.requires_grad()) return part(x, by);
  if (by.defined()) return Recompute::apply(part, x, by);
  // A function of autograd's takes no tensor that is not there.
  const NetworkPart alone = [part](const torch::Tensor& in, const torch::Tensor&) {
    return part(in, {});
  };
  return Recompute::apply(alone, x, torch::empty({0}, x.options()));
}

}  // namespace millrace
