#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"
#include "tests/parity/perceptual_net.h"

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>
#include <millrace/training/optim/optimizer.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

namespace millrace {

namespace {

VideoTokenizerConfig config_of(const Fixture& fixture, bool compat) {
  VideoTokenizerConfig config = VideoTokenizerConfig::from_json(fixture.config());
  config.compat = compat;  // the fixture has the bugs of the package
  return config;
}

NamedTensors gradients(const VideoTokenizerImpl& model) {
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
        model_(config_of(fixture, !report.tolerance().as_trained)) {
    model_->set_channels_last(report.tolerance().as_trained);
    model_->set_perceptual_net(perceptual_net(fixture, "param/vgg."));
    model_->set_draws(draws_);
    load_weights(fixture_, *model_, "vgg.");
    model_->train(was_training());
    video_ = fixture.tensor("input/video");
    if (fixture.has("input/cond")) options_.video.cond = fixture.tensor("input/cond");
    options_.discriminator_gradients = true;
  }

  void generator() {
    if (!fixture_.has("loss/gen")) return;
    clear();
    VideoGeneratorLoss loss = model_->generator_loss(video_, options_);
    if (is_fixed()) return;
    report_.loss("gen", loss.total, fixture_.tensor("loss/gen"));
    report_.part(fixture_, "gen.recon", loss.reconstruction);
    report_.part(fixture_, "gen.quantizer_aux", loss.quantizer);
    report_.part(fixture_, "gen.perceptual", loss.perceptual);
    report_.part(fixture_, "gen.gen", loss.adversarial);
    report_.part(fixture_, "gen.adaptive_weight", loss.adaptive_weight);
    report_.part(fixture_, "gen.per_sample_entropy", loss.per_sample_entropy);
    report_.part(fixture_, "gen.batch_entropy", loss.batch_entropy);
    report_.part(fixture_, "gen.commitment", loss.commitment);
    for (std::size_t i = 0; i < loss.multiscale.size(); ++i) {
      report_.part(fixture_, "gen.multiscale." + std::to_string(i), loss.multiscale[i]);
      report_.part(fixture_, "gen.multiscale_weight." + std::to_string(i),
                   loss.multiscale_weights[i]);
    }
    loss.backward();
    report_.gradients("gen", gradients(*model_), fixture_.with("grad/gen/"), true);
  }

  void discriminator() {
    if (!fixture_.has("loss/discr")) return;
    clear();
    const VideoDiscriminatorLoss loss = model_->discriminator_loss(video_, options_);
    report_.loss("discr", loss.total, fixture_.tensor("loss/discr"));
    report_.part(fixture_, "discr.discr", loss.hinge);
    report_.part(fixture_, "discr.gradient_penalty", loss.gradient_penalty);
    for (std::size_t i = 0; i < loss.multiscale.size(); ++i) {
      report_.part(fixture_, "discr.multiscale." + std::to_string(i), loss.multiscale[i]);
    }
    loss.total.backward();
    report_.gradients("discr", gradients(*model_), fixture_.with("grad/discr/"), true);
  }

  void reconstruction() {
    if (!fixture_.has("loss/recon")) return;
    clear();
    const torch::Tensor video = model_->as_video(video_);
    const Quantized quantized = model_->quantize(model_->encode(video, options_.video));
    const torch::Tensor made = model_->decode(quantized.features, options_.video);
    const torch::Tensor loss = made.square().mean();
    report_.loss("recon", loss, fixture_.tensor("loss/recon"));
    loss.backward();
    report_.gradients("recon", gradients(*model_), fixture_.with("grad/recon/"), true);
    if (!fixture_.has("output/recon.codes")) return;
    const torch::Tensor codes = fixture_.tensor("output/recon.codes");
    report_.output("codes", quantized.indices, codes);
    report_.output("recon", made, fixture_.tensor("output/recon.recon"));
    report_.output("tokenize", model_->tokenize(video_, options_.video), codes);
    // In eval mode, decoding the codes gives the reconstruction.
    torch::NoGradGuard no_grad;
    report_.output("decode_from_code_indices",
                   model_->decode_from_code_indices(codes, options_.video),
                   fixture_.tensor("output/recon.recon"));
  }

  void finish() {
    if (draws_->left() > 0) {
      report_.failure(std::to_string(draws_->left()) + " recorded random numbers were not used");
    }
  }

  // Generator and discriminators step alternately, each with its own batch.
  void steps() {
    if (!fixture_.has("step/config") || is_fixed()) return;
    load_weights(fixture_, *model_, "vgg.");
    clear();
    model_->train();
    NamedTensors recorded = fixture_.with("step/rand/");
    std::sort(recorded.begin(), recorded.end(),
              [](const auto& a, const auto& b) { return std::stol(a.first) < std::stol(b.first); });
    model_->set_draws(std::make_shared<Draws>(std::move(recorded)));
    const auto config = nlohmann::json::parse(fixture_.text("step/config"));
    const OptimizerOptions adamw{.kind = OptimizerKind::adamw,
                                 .lr = config.at("lr"),
                                 .betas = {0.9, 0.99},
                                 .weight_decay = 0.01,
                                 .as_in_python = true};
    std::vector<Optimizer> discriminators{Optimizer(model_->discriminator_parameters(), adamw)};
    for (std::size_t i = 0; i < model_->config().multiscale_discrs.size(); ++i) {
      discriminators.emplace_back(model_->multiscale_parameters(i), adamw);
    }
    Optimizer generator(model_->generator_parameters(), adamw);
    for (int i = 0; i < config.at("steps").get<int>(); ++i) {
      const std::string at = std::to_string(i);
      VideoLossOptions as_in_python;
      as_in_python.discriminator_gradients = true;
      VideoGeneratorLoss loss = model_->generator_loss(input(2 * i), as_in_python);
      report_.loss("step " + at + " gen", loss.total, fixture_.tensor("step/loss/" + at + ".gen"),
                   i > 0);
      loss.backward();
      generator.step();
      clear();
      if (!model_->config().has_gan()) continue;
      VideoLossOptions options;
      options.gradient_penalty = i % config.at("penalty_every").get<int>() == 0;
      const torch::Tensor discr = model_->discriminator_loss(input(2 * i + 1), options).total;
      report_.loss("step " + at + " discr", discr, fixture_.tensor("step/loss/" + at + ".discr"),
                   i > 0);
      discr.backward();
      for (Optimizer& optimizer : discriminators) {
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    compare_steps();
  }

 private:
  void compare_steps() {
    // If a gradient is only rounding error, Adam's step is the sign of that error: not comparable.
    const double zero = 10 * report_.tolerance().zero;
    std::set<std::string> aimless = zero_gradients(fixture_.with("grad/discr/"), zero);
    for (const std::string& name : zero_gradients(fixture_.with("grad/gen/"), zero)) {
      if (!name.starts_with("discr.")) aimless.insert(name);
    }
    auto moved = [&](NamedTensors tensors) {
      std::erase_if(tensors, [&](const auto& item) { return aimless.contains(item.first); });
      return tensors;
    };
    report_.tensors("parameters after steps", moved(parameter_tensors(*model_)),
                    moved(fixture_.with("step/after/")));
  }

  torch::Tensor input(int i) const { return fixture_.tensor("step/input/" + std::to_string(i)); }

  // The package's multi-scale loss does not call the discriminators, and its adaptive weight
  // ignores the separate convolution of the first frame. Training fixes both bugs, so there is
  // nothing to compare.
  bool is_fixed() const {
    const VideoTokenizerConfig& config = model_->config();
    const bool weighed = config.has_gan() && fixture_.has("param/vgg.net.0.weight");
    return report_.tolerance().as_trained &&
           (config.has_multiscale() || (config.separate_first_frame_encoding && weighed));
  }

  // A fixture does not say whether it was made in training mode. In eval mode the lookup-free
  // quantizer has no gradient, and the adaptive weight of the adversarial loss is 1.
  bool was_training() const {
    if (!model_->config().use_fsq) return fixture_.has("grad/recon/conv_in.conv.weight");
    return !fixture_.has("param/vgg.net.0.weight") || !model_->config().has_gan() ||
           fixture_.tensor("loss/gen.adaptive_weight").item<double>() != 1;
  }

  void clear() { model_->zero_grad(/*set_to_none=*/true); }

  const Fixture& fixture_;
  Report& report_;
  VideoTokenizer model_;
  std::shared_ptr<Draws> draws_ = fixture_.draws();
  torch::Tensor video_;
  VideoLossOptions options_;
};

}  // namespace

void check_video_tokenizer(const Fixture& fixture, Report& report) {
  Run run(fixture, report);
  run.generator();
  run.discriminator();
  run.reconstruction();
  run.finish();
  run.steps();
}

}  // namespace millrace
