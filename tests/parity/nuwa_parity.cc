#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"
#include "tests/parity/vae_steps.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/nuwa/nuwa.h>
#include <millrace/training/optim/optimizer.h>

#include <set>

#include <nlohmann/json.hpp>

namespace millrace {

namespace {

class Run {
 public:
  Run(const Fixture& fixture, Report& report)
      : fixture_(fixture), report_(report), model_(config_of(fixture)) {
    load_weights(fixture, *model_, "vgg.");
    model_->set_draws(draws_);
  }

  void names() {
    std::set<std::string> ours;
    for (const auto& [name, tensor] : state_tensors(*model_)) ours.insert(name);
    const std::vector<std::string> wanted = nlohmann::json::parse(fixture_.text("state_names"));
    if (ours != std::set<std::string>(wanted.begin(), wanted.end())) {
      report_.failure("the names of the state_dict differ");
    }
  }

  void losses() {
    model_->train();
    model_->zero_grad();
    const torch::Tensor text = fixture_.tensor("input/text"),
                        video = fixture_.tensor("input/video");
    const torch::Tensor codes = model_->codes_of(video);
    report_.output("codes", codes, fixture_.tensor("output/codes").flatten(1));
    const torch::Tensor loss = model_->loss(text, video);
    report_.loss("video", loss, fixture_.tensor("loss/video"));
    loss.backward();
    report_.gradients("video", gradients_of(*model_), fixture_.with("grad/video/"), true);
    model_->zero_grad();
    const torch::Tensor certain = model_->loss(text, codes, {.cond_dropout_prob = 0});
    report_.loss("codes", certain, fixture_.tensor("loss/codes"));
    certain.backward();
    report_.gradients("codes", gradients_of(*model_), fixture_.with("grad/codes/"), true);
    if (draws_->left() > 0) {
      report_.failure(std::to_string(draws_->left()) + " recorded random numbers were not used");
    }
  }

  // Greedy with and without the KV cache, and random with the random numbers that Python drew.
  void generation() {
    const torch::Tensor text = fixture_.tensor("input/text");
    const auto options = nlohmann::json::parse(fixture_.text("generate"));
    model_->set_draws(std::make_shared<Draws>());
    NuwaGenerateOptions greedy{.filter_thres = 1,
                               .cond_scale = options.at("cond_scale"),
                               .num_frames = options.at("num_frames")};
    for (bool cached : {true, false}) {
      greedy.cached = cached;
      const torch::Tensor codes = model_->generate_codes(text, greedy);
      report_.output(cached ? "greedy codes" : "greedy codes, no cache", codes.flatten(1),
                     fixture_.tensor("output/greedy"));
    }
    if (fixture_.has("output/greedy_video")) {
      greedy.cached = true;
      report_.output("greedy video", model_->generate(text, greedy),
                     fixture_.tensor("output/greedy_video"));
    }
    model_->set_draws(fixture_.draws("lot/"));
    NuwaGenerateOptions random = greedy;
    random.filter_thres = 0.5;
    random.temperature = 0.7;
    report_.output("random codes", model_->generate_codes(text, random).flatten(1),
                   fixture_.tensor("output/lot"));
  }

  void steps() {
    load_weights(fixture_, *model_, "vgg.");
    model_->set_draws(fixture_.draws("step/rand/"));
    model_->train();
    const auto config = nlohmann::json::parse(fixture_.text("step/config"));
    Optimizer optimizer(model_->trained_parameters(), {.kind = OptimizerKind::adamw,
                                                       .lr = config.at("lr"),
                                                       .weight_decay = config.at("weight_decay"),
                                                       .as_in_python = true});
    optimizer.zero_grad();
    for (int i = 0; i < config.at("steps").get<int>(); ++i) {
      const std::string at = std::to_string(i);
      const torch::Tensor loss =
          model_->loss(fixture_.tensor("input/text"), fixture_.tensor("step/input/" + at));
      report_.loss("step " + at, loss, fixture_.tensor("step/loss/" + at), i > 0);
      loss.backward();
      optimizer.clip(config.at("max_grad_norm"));
      optimizer.step();
      optimizer.zero_grad();
    }
    // If a gradient is only rounding error, Adam's step is the sign of that error: not comparable.
    const std::set<std::string> aimless =
        zero_gradients(fixture_.with("grad/video/"), 10 * report_.tolerance().zero);
    auto moved = [&](NamedTensors tensors) {
      std::erase_if(tensors, [&](const auto& item) {
        return aimless.contains(item.first) || item.first.starts_with("vae.");
      });
      return tensors;
    };
    report_.tensors("parameters after steps", moved(parameter_tensors(*model_)),
                    moved(fixture_.with("step/after/")));
  }

 private:
  static NuwaConfig config_of(const Fixture& fixture) {
    NuwaConfig config = NuwaConfig::from_json(fixture.config());
    config.compat = true;  // the fixture has the bugs of the package
    return config;
  }

  const Fixture& fixture_;
  Report& report_;
  Nuwa model_;
  std::shared_ptr<Draws> draws_ = fixture_.draws();
};

}  // namespace

void check_nuwa(const Fixture& fixture, Report& report) {
  Run run(fixture, report);
  run.names();
  run.losses();
  run.generation();
  run.steps();
}

}  // namespace millrace
