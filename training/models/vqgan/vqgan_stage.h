// Trains a VQGAN-VAE, Muse's or NUWA's: a generator phase and a discriminator phase, each with
// batches of its own, as the trainer in Python takes them.
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
  double max_grad_norm = 0;                   // of the generator; 0: not clipped
  double discr_max_grad_norm = 0;             // of the discriminator
  std::int64_t apply_grad_penalty_every = 4;  // steps; 0: never
  // How much of the adversarial loss there is, beside the loss that it is weighed against; by
  // default 1 beside the perceptual loss, as in Python, and less beside the reconstruction alone.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_step = 0;  // until then there is none of it
  std::filesystem::path vgg{};        // VGG16's weights; empty: no perceptual loss
  // Of the batch: float32 in [0, 1], [rows, channels, height, width], or with frames before the
  // height, each of which is a picture.
  std::string field = "image";
  // As the trainer in Python does it: the gradient penalty in every step (NUWA's: in none), and
  // every operation in its order, so that sums round as its sums do.
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
  // "<step>" and "<step>.ema": each picture beside its reconstruction.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  // vae.<step>.pt and vae.<step>.ema.pt
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
