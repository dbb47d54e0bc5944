// Trains Muse's or NUWA's VQGAN-VAE: a generator phase and a discriminator phase. As in the Python
// trainer, each phase reads its own batches.
//
//   VqganStage stage(VqganConfig{.dim = 64, .codebook_size = 1024}, {.optimizer = {.lr = 3e-4}});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

struct VqganStageOptions {
  OptimizerOptions optimizer{.lr = 3e-4};
  double max_grad_norm = 0;                   // generator; 0 disables clipping
  double discr_max_grad_norm = 0;             // discriminator; 0 disables clipping
  std::int64_t apply_grad_penalty_every = 4;  // in steps; 0 disables the penalty
  // Factor of the adversarial loss, on top of the adaptive weight. Default: 1 with a perceptual
  // loss, as in the Python trainer; 0.1 without.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_step = 0;  // first step with an adversarial loss
  std::filesystem::path vgg{};        // VGG16 weights; empty: no perceptual loss
  // Batch field: float32 in [0, 1], [rows, channels, height, width], or [rows, channels, frames,
  // height, width], where every frame is one picture.
  std::string field = "image";
  // Reproduces the Python trainer: gradient penalty in every step (NUWA: in no step), and
  // operations in the order of the Python package, so results are rounded the same way.
  bool compat = false;
  torch::Device device = torch::kCPU;
};

class VqganStage : public Stage {
 public:
  VqganStage(const VqganConfig& config, const VqganStageOptions& options);
  VqganStage(const NuwaVqganConfig& config, const VqganStageOptions& options);

  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *average_; }
  std::vector<Phase> phases() override;
  void join(RankGroup& ranks) override;
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  Logs validate(const Batch& batch, bool average) override;
  // Samples "<step>" and "<step>.ema": input and reconstruction, side by side.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  // Files vae.<step>.pt and vae.<step>.ema.pt.
  std::vector<std::pair<std::string, Value>> weights(std::int64_t step, const Value& ema) override;
  std::string config() const override { return model_->config_json(); }

 private:
  torch::Tensor pictures(const Batch& batch) const;
  OptimizerOptions optimizer_options() const;
  double adversarial_weight(std::int64_t step) const;

  VqganStage(std::shared_ptr<PictureVaeImpl> model, std::shared_ptr<PictureVaeImpl> average,
             const VqganStageOptions& options);

  VqganStageOptions options_;
  std::shared_ptr<PictureVaeImpl> model_, average_;
  Optimizer generator_;
  std::optional<Optimizer> discriminator_;
};

}  // namespace millrace
