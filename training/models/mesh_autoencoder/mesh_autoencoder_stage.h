// Trains MeshGPT's autoencoder: one phase, with the names and settings of its trainer in Python.
//
//   MeshAutoencoderStage stage(MeshAutoencoderConfig{}, {.max_grad_norm = 1});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_stage_options.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

// Batches: vertices float32, faces int64 and face_edges int64, filled up with the model's pad_id.
// What else is in a batch is not looked at.
class MeshAutoencoderStage : public Stage {
 public:
  MeshAutoencoderStage(const MeshAutoencoderConfig& config,
                       const MeshAutoencoderStageOptions& options);

  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *average_; }
  std::vector<Phase> phases() override;
  void join(RankGroup& ranks) override;
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  double backward_seconds() const override { return backward_seconds_; }
  // "recon_loss", and "accuracy": the share of coordinates that come out in their own bin.
  Logs validate(const Batch& batch, bool average) override;
  // "reconstructed.<step>" and "....ema": meshes beside their reconstructions; the first of them
  // as a file too.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  AverageState average_state() const override {
    return {.name = "ema_model", .with_online_model = true};
  }
  std::string config() const override { return model_->config().to_json(); }

 private:
  Meshes meshes(const Batch& batch) const;

  MeshAutoencoderStageOptions options_;
  MeshAutoencoder model_, average_;
  Optimizer optimizer_;
  double backward_seconds_ = 0;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
};

}  // namespace millrace
