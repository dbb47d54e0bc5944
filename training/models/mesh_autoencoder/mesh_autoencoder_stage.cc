#include <millrace/decoders/mesh/mesh_picture.h>
#include <millrace/decoders/mesh/mesh_write.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_stage.h>
#include <millrace/training/models/module/tensor_views.h>

#include <algorithm>
#include <chrono>

namespace millrace {

namespace {

OptimizerOptions as_in_python(const MeshAutoencoderStageOptions& options) {
  OptimizerOptions all = options.optimizer;
  // As in the package: Adam with one parameter group without weight decay, AdamW with two groups
  // with it.
  if (all.kind == OptimizerKind::adam && all.weight_decay > 0) all.kind = OptimizerKind::adamw;
  all.as_in_python = options.compat;
  all.clip_each_group = true;
  return all;
}

}  // namespace

MeshAutoencoderStage::MeshAutoencoderStage(const MeshAutoencoderConfig& config,
                                           const MeshAutoencoderStageOptions& options)
    : options_(options),
      model_(config),
      average_(config),
      optimizer_(model_->parameters(), as_in_python(options)) {
  model_->to(options.device);  // in place: the optimizer's parameters stay valid
  average_->to(options.device);
  model_->set_faces_at_once(options.faces_at_once);
  average_->set_faces_at_once(options.faces_at_once);
  model_->set_draws(draws_);
  for (torch::Tensor& parameter : average_->parameters()) parameter.requires_grad_(false);
}

std::vector<Phase> MeshAutoencoderStage::phases() {
  return {{.loss = "total_loss",
           .optimizers = {{.state = "optimizer",
                           .optimizer = &optimizer_,
                           .max_grad_norm = options_.max_grad_norm,
                           .warmup = "warmup",
                           .schedule = "scheduler",
                           .group = "optimizer"}}}};
}

void MeshAutoencoderStage::join(RankGroup& ranks) {
  Codebook codebook = model_->codebook();
  if (!codebook) return;
  codebook->ranks = {.rank = ranks.rank(),
                     .world = ranks.world(),
                     .sum = [&ranks](torch::Tensor& tensor) { ranks.sum(tensor); }};
}

Meshes MeshAutoencoderStage::meshes(const Batch& batch) const {
  Meshes meshes{.vertices = to_tensor(batch["vertices"]), .faces = to_tensor(batch["faces"])};
  if (options_.face_edges) meshes.face_edges = to_tensor(batch["face_edges"]);
  return meshes;
}

Logs MeshAutoencoderStage::backward(const Batch& batch, const MicroStep& micro) {
  if (!options_.compat) {
    const std::uint64_t key = mix(options_.seed, static_cast<std::uint64_t>(micro.step));
    draws_->reseed(mix(key, static_cast<std::uint64_t>(batch.indices()[0])));
  }
  const MeshLoss loss = model_->loss(meshes(batch));
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  (loss.total * micro.scale).backward();
  backward_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
  return {{"total_loss", loss.total.item<double>()},
          {"recon_loss", loss.reconstruction.item<double>()},
          {"commit_loss", loss.commitment.sum().item<double>()}};
}

// Evaluates each mesh alone, so that the result does not depend on the batch or the rank.
Logs MeshAutoencoderStage::validate(const Batch& batch, bool average) {
  const Meshes all = meshes(batch);
  const std::int64_t rows = all.faces.size(0);
  double loss = 0, accuracy = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    Meshes one{.vertices = all.vertices.narrow(0, i, 1), .faces = all.faces.narrow(0, i, 1)};
    if (all.face_edges.defined()) one.face_edges = all.face_edges.narrow(0, i, 1);
    const MeshValidation found = (average ? average_ : model_)->validate(one);
    loss += found.reconstruction.item<double>();
    accuracy += found.accuracy.item<double>();
  }
  const auto count = static_cast<double>(rows);
  return {{"recon_loss", loss / count}, {"accuracy", accuracy / count}};
}

Samples MeshAutoencoderStage::sample(const Batch& batch, std::int64_t step, bool average) {
  Meshes shown = meshes(batch);
  const std::int64_t rows = std::min(options_.num_save_recons, shown.faces.size(0));
  shown.vertices = shown.vertices.narrow(0, 0, rows);
  shown.faces = shown.faces.narrow(0, 0, rows);
  if (shown.face_edges.defined()) shown.face_edges = shown.face_edges.narrow(0, 0, rows);
  MeshAutoencoder& model = average ? average_ : model_;
  const torch::Tensor reconstructed = model->reconstruct(shown);
  const torch::Tensor masks = (shown.faces != model->config().pad_id).all(-1);
  std::vector<std::vector<Array>> sheet;
  for (std::int64_t i = 0; i < rows; ++i) {
    const torch::Tensor real = shown.vertices[i].index({shown.faces[i].clamp_min(0)});
    sheet.push_back({face_triangles(real, masks[i]), face_triangles(reconstructed[i], masks[i])});
  }
  const std::string name = "reconstructed." + std::to_string(step) + (average ? ".ema" : "");
  const Mesh first = mesh_of_triangles(sheet[0][1]);
  return {.pictures = {{.name = name, .pixels = mesh_sheet(sheet)}},
          .files = {{.name = name + ".obj", .content = encode_obj(first)}}};
}

}  // namespace millrace
