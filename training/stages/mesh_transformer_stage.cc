#include <millrace/pipeline/random.h>
#include <millrace/training/stages/mesh_transformer_stage.h>
#include <millrace/training/tensor.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <torch/torch.h>

namespace millrace {

namespace {

OptimizerOptions optimizer_of(const MeshTransformerConfig& config,
                              const MeshTransformerStageOptions& options) {
  OptimizerOptions all = options.optimizer;
  all.as_in_python = config.compat;
  all.clip_each_group = true;
  return all;
}

// The corners of every face, three vertices each: what the decoder says, nothing merged.
std::string obj_of(const torch::Tensor& faces) {
  const torch::Tensor corners = faces.to(torch::kCPU).reshape({-1, 3}).contiguous();
  const auto at = corners.accessor<float, 2>();
  const std::int64_t each = faces.size(1);
  std::string text;
  char line[96];
  for (std::int64_t i = 0; i < corners.size(0); ++i) {
    std::snprintf(line, sizeof line, "v %.6g %.6g %.6g\n", at[i][0], at[i][1], at[i][2]);
    text += line;
  }
  for (std::int64_t i = 0; i < faces.size(0); ++i) {
    text += "f";
    for (std::int64_t j = 1; j <= each; ++j) text.append(" ").append(std::to_string(i * each + j));
    text += "\n";
  }
  return text;
}

}  // namespace

MeshTransformerStage::MeshTransformerStage(const MeshTransformerConfig& config,
                                           MeshAutoencoder autoencoder,
                                           const MeshTransformerStageOptions& options)
    : options_(options),
      autoencoder_(std::move(autoencoder)),
      model_(config, autoencoder_.ptr()),
      optimizer_(model_->trained_parameters(), optimizer_of(config, options)) {
  model_->to(options.device);  // the parameters stay the same objects
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

// Each mesh by itself: what else is in the batch, and on which rank, does not count.
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

Samples MeshTransformerStage::sample(const Batch& batch, std::int64_t step, bool average) {
  if (average || options_.sample_every == 0 || (step + 1) % options_.sample_every != 0) return {};
  const std::int64_t rows = std::min(options_.num_samples, batch.size());
  MeshGenerateOptions options{.batch_size = rows,
                              .temperature = options_.sample_temperature,
                              .seed = mix(options_.seed, static_cast<std::uint64_t>(step))};
  options.max_seq_len = options_.sample_max_faces * model_->config().codes_of_face();
  const torch::Tensor text = text_embeds(batch);
  if (text.defined()) options.text_embeds = text.slice(0, 0, rows);
  const torch::Tensor made = model_->generate(options);
  const std::int64_t whole = made.size(1) / model_->config().codes_of_face();
  Samples samples;
  const DecodedFaces decoded = autoencoder_->decode_from_codes_to_faces(
      made.slice(1, 0, whole * model_->config().codes_of_face()));
  for (std::int64_t i = 0; i < rows; ++i) {
    const torch::Tensor faces = decoded.coordinates[i].index({decoded.mask[i]});
    samples.files.push_back(
        {"sampled." + std::to_string(step + 1) + "." + std::to_string(i) + ".obj", obj_of(faces)});
    samples.lines.push_back("sampled." + std::to_string(step + 1) + "." + std::to_string(i) +
                            ".obj: " + std::to_string(faces.size(0)) + " faces");
  }
  return samples;
}

}  // namespace millrace
