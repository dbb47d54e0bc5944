// Trains MeshGPT's autoencoder: one phase, with the names and settings of the Python trainer.
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

// Reads the batch fields vertices (float32), faces (int64) and face_edges (int64), padded with the
// model's pad_id. Ignores all others.
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
  // Returns "recon_loss" and "accuracy", the fraction of coordinates that are decoded to the
  // correct bin.
  Logs validate(const Batch& batch, bool average) override;
  // Samples "reconstructed.<step>" and "reconstructed.<step>.ema": input and reconstruction, side
  // by side. The first reconstruction is also written as a mesh file.
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
