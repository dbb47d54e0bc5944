#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/optim/optimizer.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

namespace millrace {

namespace {

MeshTransformerConfig config_of(const Fixture& fixture, bool compat) {
  MeshTransformerConfig config = MeshTransformerConfig::from_json(fixture.config());
  config.compat = compat;
  return config;
}

NamedTensors gradients(const MeshTransformerImpl& model) {
  NamedTensors found;
  for (const auto& [name, parameter] : parameter_tensors(model)) {
    if (parameter.grad().defined()) found.emplace_back(name, parameter.grad());
  }
  return found;
}

class Run {
 public:
  Run(const Fixture& fixture, Report& report)
      : fixture_(fixture),
        report_(report),
        as_in_python_(config_of(fixture, true)),
        fixed_(config_of(fixture, false)) {
    for (MeshTransformer model : {as_in_python_, fixed_}) {
      load_weights(fixture_, *model, "autoencoder.");
      model->set_draws(draws_);
    }
    codes_ = fixture.tensor("input/codes");
    if (fixture.has("input/text_embeds")) text_ = fixture.tensor("input/text_embeds");
  }

  // In training mode. The losses are in the order in which Python drew the dropped texts.
  void losses() {
    loss_of("codes", as_in_python_);
    loss_of("mended", fixed_);  // the fixture's name for it
    if (draws_->left() > 0) {
      report_.failure(std::to_string(draws_->left()) + " recorded random numbers were not used");
    }
  }

  void outside_training() {
    torch::NoGradGuard no_grad;
    as_in_python_->eval();
    fixed_->eval();
    report_.loss("eval", as_in_python_->loss(codes_, text_), fixture_.tensor("loss/eval"));
    const torch::Tensor logits = fixture_.tensor("output/logits");
    const torch::Tensor some = codes_.slice(1, 0, logits.size(1) - 1).clamp_min(0);
    report_.output("logits", as_in_python_->logits(some, text_), logits);
    report_.output("logits, fixed", fixed_->logits(some, text_), logits);
  }

  // Every token must be equal, with and without the KV cache.
  void generation() {
    for (const auto& [name, wanted] : fixture_.with("output/made.")) {
      MeshGenerateOptions options{.temperature = 0, .text_embeds = text_};
      if (fixture_.has("input/made." + name))
        options.prompt = fixture_.tensor("input/made." + name);
      if (name == "nothing") options.batch_size = codes_.size(0);
      if (name == "guided") options.cond_scale = 2.5;
      for (const bool cached : {true, false}) {
        options.cache_kv = cached;
        const std::string what = "generated from " + name + (cached ? "" : ", without cache");
        compare_codes(what, fixed_->generate(options), wanted);
        compare_codes(what + ", as in Python", as_in_python_->generate(options), wanted);
      }
    }
  }

  void steps() {
    load_weights(fixture_, *as_in_python_, "autoencoder.");
    as_in_python_->train();
    NamedTensors recorded = fixture_.with("step/rand/");
    std::sort(recorded.begin(), recorded.end(),
              [](const auto& a, const auto& b) { return std::stol(a.first) < std::stol(b.first); });
    as_in_python_->set_draws(std::make_shared<Draws>(std::move(recorded)));
    const auto config = nlohmann::json::parse(fixture_.text("step/config"));
    Optimizer optimizer(as_in_python_->trained_parameters(),
                        {.lr = config.at("lr"), .betas = {0.9, 0.99}, .as_in_python = true});
    for (int i = 0; i < config.at("steps").get<int>(); ++i) {
      const std::string at = std::to_string(i);
      torch::Tensor text;
      if (text_.defined()) text = fixture_.tensor("step/text/" + at);
      optimizer.zero_grad();
      const torch::Tensor loss = as_in_python_->loss(fixture_.tensor("step/input/" + at), text);
      report_.loss("step " + at, loss, fixture_.tensor("step/loss/" + at), i > 0);
      loss.backward();
      optimizer.clip(config.at("max_norm"));
      optimizer.step();
    }
    // If a gradient is only rounding error, Adam's step is the sign of that error: not comparable.
    const std::set<std::string> aimless =
        zero_gradients(fixture_.with("grad/codes/"), 10 * report_.tolerance().zero);
    auto moved = [&](NamedTensors tensors) {
      std::erase_if(tensors, [&](const auto& item) { return aimless.contains(item.first); });
      return tensors;
    };
    report_.tensors("parameters after steps", moved(parameter_tensors(*as_in_python_)),
                    moved(fixture_.with("step/after/")));
  }

 private:
  void loss_of(const std::string& tag, MeshTransformer& model) {
    model->train();
    model->zero_grad(/*set_to_none=*/true);
    const torch::Tensor loss = model->loss(codes_, text_);
    report_.loss(tag, loss, fixture_.tensor("loss/" + tag));
    loss.backward();
    report_.gradients(tag, gradients(*model), fixture_.with("grad/" + tag + "/"), true);
  }

  void compare_codes(const std::string& what, const torch::Tensor& made,
                     const torch::Tensor& wanted) {
    if (made.sizes() != wanted.sizes()) {
      report_.failure(what + ": " + std::to_string(made.size(1)) + " codes instead of " +
                      std::to_string(wanted.size(1)));
      return;
    }
    report_.output(what, made, wanted);
  }

  const Fixture& fixture_;
  Report& report_;
  MeshTransformer as_in_python_, fixed_;  // with and without the bugs of the package
  std::shared_ptr<Draws> draws_ = fixture_.draws();
  torch::Tensor codes_, text_;
};

}  // namespace

void check_mesh_transformer(const Fixture& fixture, Report& report) {
  Run run(fixture, report);
  run.losses();
  run.outside_training();
  run.generation();
  run.steps();
}

}  // namespace millrace
