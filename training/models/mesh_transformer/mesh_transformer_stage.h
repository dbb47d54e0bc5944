// Trains MeshGPT's transformer: on meshes, which its frozen autoencoder turns into codes at every
// step, or on codes that were made once. There is no moving average.
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
  double max_grad_norm = 0.5;  // of each group of parameters; 0: not clipped
  // Of the batch: codes, collated by padding. Empty: "vertices", "faces" and "face_edges" are
  // encoded.
  std::string codes_field{};
  bool face_edges = true;  // false: found here, at every step
  // Of the batch, for a model that is conditioned on texts: one or the other.
  std::string text_field{};         // texts, for the encoder inside
  std::string text_embeds_field{};  // float32 [rows, words, dim_text], padded with 0
  // Meshes that are generated every so many steps, with a validation; 0: never.
  std::int64_t sample_every = 1000, num_samples = 8;
  double sample_temperature = 1;
  std::int64_t sample_max_faces = 200;  // 0: as many as the model can
  // When validations are: every so many steps, and after this one.
  std::int64_t validate_every = 1, last_step = -1;
  // Of what is drawn: which texts are dropped depends on the step and the meshes, not on which rank
  // has them. (With the model's `compat` it is drawn as Python draws it.)
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
  // "loss": the mean over the meshes.
  Logs validate(const Batch& batch, bool average) override;
  // "sampled.<step>.png" and "sampled.<step>.<n>.obj": meshes that the transformer wrote, of the
  // batch's texts if it has any.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  std::string config() const override { return model_->config().to_json(); }

  // int64 [rows, codes], padded with -1.
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
