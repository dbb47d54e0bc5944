#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/optim/optimizer.h>

#include <nlohmann/json.hpp>

namespace millrace {

namespace {

MeshAutoencoderConfig config_of(const Fixture& fixture) {
  MeshAutoencoderConfig config = MeshAutoencoderConfig::from_json(fixture.config());
  config.compat = true;  // the fixture has the bugs of the package
  return config;
}

Meshes meshes_of(const Fixture& fixture, const std::string& prefix) {
  Meshes meshes{.vertices = fixture.tensor(prefix + "vertices"),
                .faces = fixture.tensor(prefix + "faces")};
  if (fixture.has(prefix + "face_edges")) meshes.face_edges = fixture.tensor(prefix + "face_edges");
  return meshes;
}

class Run {
 public:
  Run(const Fixture& fixture, Report& report)
      : fixture_(fixture), report_(report), model_(config_of(fixture)) {}

  // `reference`: operations in the order of the Python package; otherwise as in training, where
  // `faces_at_once` 1 puts every mesh into a group of its own.
  void loss(const std::string& tag, bool reference, std::int64_t faces_at_once = 1 << 20) {
    begin(fixture_.draws());
    model_->set_reference(reference);
    model_->set_faces_at_once(faces_at_once);
    const MeshLoss loss = model_->loss(meshes_);
    report_.loss(tag, loss.total, fixture_.tensor("loss/ae"));
    report_.loss(tag + ".recon", loss.reconstruction, fixture_.tensor("loss/ae.recon"));
    report_.loss(tag + ".commit", loss.commitment.sum(), fixture_.tensor("loss/ae.commit"));
    loss.total.backward();
    NamedTensors gradients;
    for (const auto& [name, parameter] : parameter_tensors(*model_)) {
      if (parameter.grad().defined()) gradients.emplace_back(name, parameter.grad());
    }
    if (reference) {
      report_.gradients(tag, gradients, fixture_.with("grad/ae/"));
    } else {
      report_.all_gradients(tag, gradients, fixture_.with("grad/ae/"));
    }
    NamedTensors after = fixture_.with("buffer_after/"), ours;
    for (const auto& [name, tensor] : after) ours.emplace_back(name, model_->named_buffers()[name]);
    report_.tensors(tag + " buffers", ours, after);
    if (draws_->left() > 0) {
      report_.failure(std::to_string(draws_->left()) + " recorded random numbers were not used");
    }
  }

  void codes() {
    begin(std::make_shared<Draws>());
    {
      torch::NoGradGuard no_grad;
      for (const auto& [name, tensor] : fixture_.with("buffer_after/")) {
        model_->named_buffers()[name].copy_(tensor);
      }
    }
    // If two codes are almost the same vector, rounding decides between them, so the order of
    // operations must be that of the package.
    model_->set_reference(true);
    const torch::Tensor wanted = fixture_.tensor("output/codes");
    report_.output("codes", model_->tokenize(meshes_), wanted);
    Meshes without = meshes_;
    without.face_edges.reset();
    report_.output("codes, face_edges found", model_->tokenize(without), wanted);
    const DecodedFaces faces = model_->decode_from_codes_to_faces(wanted);
    const torch::Tensor absent = faces.mask.logical_not().unsqueeze(-1).unsqueeze(-1);
    report_.output("mask", faces.mask, fixture_.tensor("output/mask"));
    report_.output("bins", faces.bins, fixture_.tensor("output/bins"));
    report_.output("coordinates", faces.coordinates.masked_fill(absent, 7),
                   fixture_.tensor("output/coordinates"));
    model_->set_reference(false);
    report_.output("reconstruction", model_->reconstruct(meshes_).masked_fill(absent, 7),
                   fixture_.tensor("output/recon_faces"));
  }

  void steps() {
    if (!fixture_.has("step/config")) return;
    begin(fixture_.draws("step/rand/"));
    model_->set_reference(true);
    model_->train();
    const auto config = nlohmann::json::parse(fixture_.text("step/config"));
    const double weight_decay = config.at("weight_decay");
    Optimizer optimizer(model_->parameters(),
                        {.kind = weight_decay > 0 ? OptimizerKind::adamw : OptimizerKind::adam,
                         .lr = config.at("lr"),
                         .betas = {0.9, 0.99},
                         .weight_decay = weight_decay,
                         .as_in_python = true,
                         .clip_each_group = true});
    for (int i = 0; i < config.at("steps").get<int>(); ++i) {
      const std::string at = std::to_string(i);
      const torch::Tensor loss = model_->loss(meshes_of(fixture_, "step/input/" + at + ".")).total;
      report_.loss("step " + at, loss, fixture_.tensor("step/loss/" + at), i > 0);
      loss.backward();
      if (!config.at("max_grad_norm").is_null()) optimizer.clip(config.at("max_grad_norm"));
      optimizer.step();
      optimizer.zero_grad();
    }
    // If a gradient is only rounding error, Adam's step is the sign of that error: not comparable.
    const std::set<std::string> aimless =
        zero_gradients(fixture_.with("grad/ae/"), 10 * report_.tolerance().zero);
    auto moved = [&](NamedTensors tensors) {
      std::erase_if(tensors, [&](const auto& item) { return aimless.contains(item.first); });
      return tensors;
    };
    report_.tensors("parameters after steps", moved(parameter_tensors(*model_)),
                    moved(fixture_.with("step/after/")));
  }

 private:
  void begin(std::shared_ptr<Draws> draws) {
    load_weights(fixture_, *model_, "no perceptual net");
    model_->zero_grad(/*set_to_none=*/true);
    draws_ = std::move(draws);
    model_->set_draws(draws_);
    // A fixture without input/train was made in training mode if its quantizers have a loss.
    const torch::Tensor& training = fixture_.has("input/train") ? fixture_.tensor("input/train")
                                                                : fixture_.tensor("loss/ae.commit");
    model_->train(training.item<double>() != 0);
  }

  const Fixture& fixture_;
  Report& report_;
  MeshAutoencoder model_;
  Meshes meshes_ = meshes_of(fixture_, "input/");
  std::shared_ptr<Draws> draws_;
};

}  // namespace

void check_mesh_autoencoder(const Fixture& fixture, Report& report) {
  Run run(fixture, report);
  run.loss("ae", true);
  run.loss("ae as trained", false);
  run.loss("ae in groups", false, 1);
  run.codes();
  run.steps();
}

}  // namespace millrace
