// Trains Muse's or NUWA's VQGAN-VAE: a generator phase and a discriminator phase. As in the Python
// trainer, each phase reads its own batches.
//
//   VqganStage stage(VqganConfig{.dim = 64, .codebook_size = 1024}, {.optimizer = {.lr = 3e-4}});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>
#include <millrace/training/models/vqgan/vqgan.h>
#include <millrace/training/models/vqgan/vqgan_stage_options.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

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
