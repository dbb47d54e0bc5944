#include "tests/parity/vae_steps.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/optim/optimizer.h>

#include <optional>
#include <set>

#include <nlohmann/json.hpp>

namespace millrace {

namespace {

// Leaves out parameters whose gradient is only rounding error: Adam's step is then its sign.
void compare_moved(const Fixture& fixture, Report& report, const PictureVaeImpl& model) {
  const double zero = report.tolerance().zero;
  std::set<std::string> aimless = zero_gradients(fixture.with("grad/discr/"), zero);
  for (const std::string& name : zero_gradients(fixture.with("grad/gen/"), zero)) {
    if (!name.starts_with("discr.")) aimless.insert(name);
  }
  auto moved = [&](NamedTensors tensors) {
    std::erase_if(tensors, [&](const auto& item) { return aimless.contains(item.first); });
    return tensors;
  };
  report.tensors("parameters after steps", moved(parameter_tensors(model)),
                 moved(fixture.with("step/after/")));
}

}  // namespace

NamedTensors gradients_of(const torch::nn::Module& model) {
  NamedTensors found;
  for (const auto& [name, parameter] : parameter_tensors(model)) {
    if (parameter.grad().defined()) found.emplace_back(name, parameter.grad());
  }
  return found;
}

void check_vae_steps(const Fixture& fixture, Report& report, PictureVaeImpl& model,
                     std::shared_ptr<Draws> draws) {
  if (!fixture.has("step/config")) return;
  model.zero_grad(/*set_to_none=*/true);
  model.train();
  if (draws) model.set_draws(std::move(draws));
  const auto config = nlohmann::json::parse(fixture.text("step/config"));
  const DiscriminatorOptions options{.gradient_penalty = config.at("gradient_penalty"),
                                     .as_in_python = true};
  const double decay = config.value("weight_decay", 0.0);
  const OptimizerOptions adam{.kind = decay > 0 ? OptimizerKind::adamw : OptimizerKind::adam,
                              .lr = config.at("lr"),
                              .weight_decay = decay,
                              .as_in_python = true};
  Optimizer generator(model.generator_parameters(), adam);
  std::optional<Optimizer> discriminator;
  if (model.has_discriminator()) discriminator.emplace(model.discriminator_parameters(), adam);
  for (int i = 0; i < config.at("steps").get<int>(); ++i) {
    const std::string at = std::to_string(i);
    auto input = [&](int which) { return fixture.tensor("step/input/" + std::to_string(which)); };
    GeneratorLoss loss = model.generator_loss(input(2 * i), {.as_in_python = true});
    report.loss("step " + at + " gen", loss.total, fixture.tensor("step/loss/" + at + ".gen"),
                i > 0);
    loss.backward();
    generator.step();
    model.zero_grad(/*set_to_none=*/true);
    if (!discriminator) continue;
    const torch::Tensor discr = model.discriminator_loss(input(2 * i + 1), options);
    report.loss("step " + at + " discr", discr, fixture.tensor("step/loss/" + at + ".discr"),
                i > 0);
    discr.backward();
    discriminator->step();
    discriminator->zero_grad();
  }
  compare_moved(fixture, report, model);
}

}  // namespace millrace
