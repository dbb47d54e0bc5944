// Trains MeshGPT's transformer: on meshes, which the frozen autoencoder encodes in every step, or
// on precomputed codes. There is no moving average.
//
//   MeshTransformerStage stage(config, autoencoder, {.codes_field = "tokens"});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_stage_options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

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
