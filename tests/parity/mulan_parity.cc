#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/mulan/mulan.h>
#include <millrace/training/models/mulan/spectrogram.h>
#include <millrace/training/optim/optimizer.h>

#include <set>

#include <nlohmann/json.hpp>

namespace millrace {

namespace {

class Run {
 public:
  Run(const Fixture& fixture, Report& report)
      : fixture_(fixture),
        report_(report),
        // Through JSON and back, as a checkpoint stores it: the model must be the same.
        model_(MulanConfig::from_json(MulanConfig::from_json(fixture.config()).to_json())) {
    load_weights(fixture_, *model_, "no perceptual net");
    const bool oracle = !fixture.has("input/train");  // oracle fixtures are made in training mode
    model_->train(oracle || fixture.tensor("input/train").item<std::int64_t>() != 0);
  }

  // Buffers that follow from the configuration must have the values that the package computed.
  void buffers() {
    Mulan fresh(MulanConfig::from_json(fixture_.config()));
    const NamedTensors wanted = fixture_.with("buffer/");
    NamedTensors ours;
    for (const auto& [name, tensor] : wanted) {
      for (const auto& item : fresh->named_buffers()) {
        if (item.key() == name) ours.emplace_back(name, item.value());
      }
    }
    report_.tensors("buffers", ours, wanted);
    std::set<std::string> names;
    for (const auto& [name, tensor] : wanted) names.insert(name);
    for (const auto& item : fresh->named_buffers()) {
      const bool augments = fresh->config().spec_augment || !item.key().starts_with("audio.aug.");
      if (augments && !names.contains(item.key()) && fixture_.has("input/train")) {
        report_.failure("the package has no buffer " + item.key());
      }
    }
  }

  void spectrogram() {
    if (!fixture_.has("output/spectrogram")) return;
    const MulanAudioConfig& c = model_->config().audio;
    Spectrogram spectrogram(SpectrogramOptions{.n_fft = c.spec_n_fft,
                                               .win_length = c.spec_win_length,
                                               .hop_length = c.hop_length(),
                                               .power = c.spec_power,
                                               .pad = c.spec_pad,
                                               .center = c.spec_center,
                                               .pad_mode = c.spec_pad_mode});
    const torch::Tensor sounds = fixture_.tensor("input/wavs").narrow(0, 0, 1);
    report_.output("spectrogram", spectrogram->forward(sounds),
                   fixture_.tensor("output/spectrogram"));
    if (c.times(sounds.size(1)) != fixture_.tensor("output/spectrogram").size(-1)) {
      report_.failure("times() returns a wrong length of the spectrogram");
    }
  }

  // `reference`: operations in the order of the Python package; otherwise as in training.
  void contrast(const std::string& tag, bool reference) {
    auto draws = fixture_.draws();
    model_->set_draws(draws);
    model_->set_reference(reference);
    model_->zero_grad(/*set_to_none=*/true);
    const torch::Tensor& sounds = fixture_.tensor("input/wavs");
    const torch::Tensor& texts = fixture_.tensor("input/texts");
    const torch::Tensor loss = model_->loss(model_->latents(sounds, texts));
    report_.loss(tag, loss, fixture_.tensor("loss/cl"));
    loss.backward();
    NamedTensors gradients;
    for (const auto& [name, parameter] : parameter_tensors(*model_)) {
      if (parameter.grad().defined()) gradients.emplace_back(name, parameter.grad());
    }
    report_.gradients(tag, gradients, fixture_.with("grad/cl/"), /*other_order=*/!reference);
    if (fixture_.has("output/audio_latents")) {
      torch::NoGradGuard no_grad;
      report_.output("audio latents", model_->audio_latents(sounds),
                     fixture_.tensor("output/audio_latents"));
      report_.output("text latents", model_->text_latents(texts),
                     fixture_.tensor("output/text_latents"));
      if (draws->left() > 0)
        report_.failure(std::to_string(draws->left()) + " recorded random numbers were not used");
    }
  }

  void steps() {
    if (!fixture_.has("step/config")) return;
    load_weights(fixture_, *model_, "no perceptual net");
    model_->zero_grad();
    model_->set_reference(true);
    model_->train();
    model_->set_draws(fixture_.draws("step/rand/"));
    const auto config = nlohmann::json::parse(fixture_.text("step/config"));
    Optimizer optimizer(model_->parameters(),
                        {.kind = config.at("lion") ? OptimizerKind::lion : OptimizerKind::adam,
                         .lr = config.at("lr"),
                         .betas = {0.9, 0.99},
                         .as_in_python = true});
    for (int i = 0; i < config.at("steps").get<int>(); ++i) {
      const std::string input = "step/input/" + std::to_string(i);
      const torch::Tensor loss = model_->loss(
          model_->latents(fixture_.tensor(input + ".wavs"), fixture_.tensor(input + ".texts")));
      report_.loss("step " + std::to_string(i), loss,
                   fixture_.tensor("step/loss/" + std::to_string(i)), i > 0);
      loss.backward();
      optimizer.clip(config.at("max_grad_norm"));
      optimizer.step();
      optimizer.zero_grad();
    }
    // If a gradient is only rounding error, a step is the sign of that error: not comparable.
    const std::set<std::string> aimless =
        zero_gradients(fixture_.with("grad/cl/"), report_.tolerance().zero);
    auto moved = [&](NamedTensors tensors) {
      std::erase_if(tensors, [&](const auto& item) { return aimless.contains(item.first); });
      return tensors;
    };
    report_.tensors("parameters after steps", moved(parameter_tensors(*model_)),
                    moved(fixture_.with("step/after/")));
  }

 private:
  const Fixture& fixture_;
  Report& report_;
  Mulan model_;
};

}  // namespace

void check_mulan(const Fixture& fixture, Report& report) {
  Run run(fixture, report);
  run.buffers();
  run.spectrogram();
  run.contrast("cl", true);
  run.contrast("cl as trained", false);
  run.steps();
}

}  // namespace millrace
