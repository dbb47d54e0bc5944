// Trains MeshGPT's autoencoder: one phase, with the names and settings of the Python trainer.
//
//   MeshAutoencoderStage stage(MeshAutoencoderConfig{}, {.max_grad_norm = 1});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct MeshAutoencoderStageOptions {
  OptimizerOptions optimizer{.kind = OptimizerKind::adam, .lr = 1e-4, .betas = {0.9, 0.99}};
  // One norm for parameters with weight decay, one for the rest; 0 disables clipping.
  double max_grad_norm = 0;
  bool face_edges = true;  // read from the batch; false: computed in every step
  // See MeshAutoencoderImpl::set_faces_at_once.
  std::int64_t faces_at_once = 8192;
  std::int64_t num_save_recons = 6;  // meshes in reconstructed.<step>.png
  // Optimizer operations in the order of the Python package, so results are rounded the same way.
  bool compat = false;
  // Seed of the quantizers' random numbers. They depend on the step and the meshes, not on the
  // rank. (With `compat` they are drawn as in the Python trainer.)
  std::uint64_t seed = 0;
  torch::Device device = torch::kCPU;
};

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
