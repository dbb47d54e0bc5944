// Trains MeshGPT's transformer: on meshes, which the frozen autoencoder encodes in every step, or
// on precomputed codes. There is no moving average.
//
//   MeshTransformerStage stage(config, autoencoder, {.codes_field = "tokens"});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct MeshTransformerStageOptions {
  OptimizerOptions optimizer{.lr = 2e-4, .betas = {0.9, 0.99}};
  double max_grad_norm = 0.5;  // of each parameter group; 0 disables clipping
  // Batch field with precomputed codes, collated with padding. Empty: the fields "vertices",
  // "faces" and "face_edges" are encoded.
  std::string codes_field{};
  bool face_edges = true;  // read face_edges from the batch; false: compute them in every step
  // Batch fields for a model that is conditioned on text; set one of the two.
  std::string text_field{};         // texts, for the model's text encoder
  std::string text_embeds_field{};  // float32 [rows, words, dim_text], padded with 0
  // Generates num_samples meshes with a validation, every sample_every steps; 0 disables samples.
  std::int64_t sample_every = 1000, num_samples = 8;
  double sample_temperature = 1;
  std::int64_t sample_max_faces = 200;  // 0: the model's limit
  // The interval of validations in steps, and the last step; needed to choose when to sample.
  std::int64_t validate_every = 1, last_step = -1;
  // Seed of the dropped texts. They depend on the step and the meshes, not on the rank. (With the
  // model's `compat` they are drawn as in the Python trainer.)
  std::uint64_t seed = 0;
  torch::Device device = torch::kCPU;
};

class MeshTransformerStage : public Stage {
 public:
  MeshTransformerStage(const MeshTransformerConfig& config, MeshAutoencoder autoencoder,
                       const MeshTransformerStageOptions& options);

  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *model_; }
  std::vector<Phase> phases() override;
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  double backward_seconds() const override { return backward_seconds_; }
  // Returns "loss", the mean over the meshes.
  Logs validate(const Batch& batch, bool average) override;
  // Files "sampled.<step>.png" and "sampled.<step>.<n>.obj": generated meshes, for the batch's
  // texts if there are any.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  std::string config() const override { return model_->config().to_json(); }

  // Returns int64 [rows, codes], padded with -1.
  torch::Tensor codes(const Batch& batch);

 private:
  torch::Tensor text_embeds(const Batch& batch);
  torch::Tensor loss(const Batch& batch);
  bool samples_at(std::int64_t step) const;

  MeshTransformerStageOptions options_;
  MeshAutoencoder autoencoder_;
  MeshTransformer model_;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  Optimizer optimizer_;
  double backward_seconds_ = 0;
};

}  // namespace millrace
