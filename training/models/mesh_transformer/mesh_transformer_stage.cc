#include <millrace/decoders/mesh/mesh_picture.h>
#include <millrace/decoders/mesh/mesh_write.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_stage.h>
#include <millrace/training/models/module/tensor_views.h>

#include <algorithm>
#include <chrono>

namespace millrace {

namespace {

OptimizerOptions optimizer_of(const MeshTransformerConfig& config,
                              const MeshTransformerStageOptions& options) {
  OptimizerOptions all = options.optimizer;
  all.as_in_python = config.compat;
  all.clip_each_group = true;
  return all;
}

// Pictures per row of the sheet, as in `generate`.
constexpr std::size_t across = 4;

}  // namespace

MeshTransformerStage::MeshTransformerStage(const MeshTransformerConfig& config,
                                           MeshAutoencoder autoencoder,
                                           const MeshTransformerStageOptions& options)
    : options_(options),
      autoencoder_(std::move(autoencoder)),
      model_(config, autoencoder_.ptr()),
      optimizer_(model_->trained_parameters(), optimizer_of(config, options)) {
  model_->to(options.device);  // in place: the optimizer's parameters stay valid
  model_->set_draws(draws_);
}

std::vector<Phase> MeshTransformerStage::phases() {
  PhaseOptimizer optimizer{.state = "optimizer",
                           .optimizer = &optimizer_,
                           .max_grad_norm = options_.max_grad_norm,
                           .warmup = "warmup",
                           .schedule = "scheduler",
                           .group = "optimizer"};
  return {Phase{.loss = "loss", .optimizers = {optimizer}}};
}

torch::Tensor MeshTransformerStage::codes(const Batch& batch) {
  if (options_.codes_field.empty()) {
    Meshes meshes{.vertices = to_tensor(batch["vertices"]), .faces = to_tensor(batch["faces"])};
    if (options_.face_edges) meshes.face_edges = to_tensor(batch["face_edges"]);
    return autoencoder_->tokenize(meshes).flatten(1);
  }
  torch::Tensor codes = to_tensor(batch[options_.codes_field]).to(torch::kInt64);
  const torch::Tensor lengths = to_tensor(batch.lengths(options_.codes_field)).to(codes.device());
  const torch::Tensor at = torch::arange(codes.size(1), torch::device(codes.device()));
  const torch::Tensor filling = at.unsqueeze(0) >= lengths.unsqueeze(1);
  if (codes.dim() > 2) {  // [rows, vertices, quantizers]
    return codes.masked_fill(filling.unsqueeze(-1), model_->config().pad_id).flatten(1);
  }
  return codes.masked_fill(filling, model_->config().pad_id);
}

torch::Tensor MeshTransformerStage::text_embeds(const Batch& batch) {
  if (!options_.text_embeds_field.empty()) return to_tensor(batch[options_.text_embeds_field]);
  if (options_.text_field.empty()) return {};
  std::vector<std::string> texts;
  for (std::string_view text : batch.texts(options_.text_field)) texts.emplace_back(text);
  return model_->embed_texts(texts);
}

torch::Tensor MeshTransformerStage::loss(const Batch& batch) {
  return model_->loss(codes(batch), text_embeds(batch));
}

Logs MeshTransformerStage::backward(const Batch& batch, const MicroStep& micro) {
  if (!model_->config().compat) {
    const std::uint64_t key = mix(options_.seed, static_cast<std::uint64_t>(micro.step));
    draws_->reseed(mix(key, static_cast<std::uint64_t>(batch.indices()[0])));
  }
  const torch::Tensor value = loss(batch);
  const auto begin = std::chrono::steady_clock::now();
  (value * micro.scale).backward();
  backward_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {{"loss", value.item<double>()}};
}

// Evaluates each mesh alone, so that the result does not depend on the batch or the rank.
Logs MeshTransformerStage::validate(const Batch& batch, bool /*average*/) {
  if (model_->config().compat) return {{"loss", loss(batch).item<double>()}};
  const torch::Tensor all = codes(batch), text = text_embeds(batch);
  double sum = 0;
  for (std::int64_t i = 0; i < all.size(0); ++i) {
    const torch::Tensor its = text.defined() ? text.narrow(0, i, 1) : text;
    sum += model_->loss(all.narrow(0, i, 1), its).item<double>();
  }
  return {{"loss", sum / static_cast<double>(all.size(0))}};
}

// Samples at the first validation at or after every `sample_every` steps, and at the last
// validation; not at step 0, where nothing is learned yet.
bool MeshTransformerStage::samples_at(std::int64_t step) const {
  if (options_.sample_every == 0 || options_.num_samples == 0 || step == 0) return false;
  return step == options_.last_step || step % options_.sample_every < options_.validate_every;
}

Samples MeshTransformerStage::sample(const Batch& batch, std::int64_t step, bool average) {
  if (average || !samples_at(step)) return {};
  const torch::Tensor text = text_embeds(batch);
  const std::int64_t rows =
      text.defined() ? std::min(options_.num_samples, batch.size()) : options_.num_samples;
  MeshGenerateOptions options{.batch_size = rows,
                              .temperature = options_.sample_temperature,
                              .seed = mix(options_.seed, static_cast<std::uint64_t>(step))};
  options.max_seq_len = options_.sample_max_faces * model_->config().codes_of_face();
  if (text.defined()) options.text_embeds = text.slice(0, 0, rows);
  const torch::Tensor generated = model_->generate(options);
  const std::int64_t whole = generated.size(1) / model_->config().codes_of_face();
  const DecodedFaces decoded = autoencoder_->decode_from_codes_to_faces(
      generated.slice(1, 0, whole * model_->config().codes_of_face()));
  const std::string name = "sampled." + std::to_string(step);
  Samples samples;
  std::vector<std::vector<Array>> sheet;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Array triangles = face_triangles(decoded.coordinates[i], decoded.mask[i]);
    const std::string file = name + "." + std::to_string(i) + ".obj";
    samples.files.push_back({file, encode_obj(mesh_of_triangles(triangles))});
    samples.lines.push_back(file + ": " + std::to_string(triangles.shape()[0]) + " faces");
    if (sheet.empty() || sheet.back().size() == across) sheet.emplace_back();
    sheet.back().push_back(triangles);
  }
  samples.pictures.push_back({.name = name, .pixels = mesh_sheet(sheet)});
  return samples;
}

}  // namespace millrace
