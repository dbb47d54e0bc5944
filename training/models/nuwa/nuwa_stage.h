// Trains NUWA's text to video: one phase, AdamW, without a moving average, as the trainer in Python
// does it. The VAE is not trained.
//
//   NuwaStage stage(NuwaConfig{.dim = 256, .vae = vae_config}, {});
//   load_weights("vae.9000.pt", state_tensors(*stage.nuwa()->vae()));
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/nuwa/nuwa.h>
#include <millrace/training/models/nuwa/nuwa_stage_options.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

class NuwaStage : public Stage {
 public:
  NuwaStage(const NuwaConfig& config, const NuwaStageOptions& options);

  Nuwa& nuwa() { return model_; }
  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *model_; }
  std::vector<Phase> phases() override;
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  double backward_seconds() const override { return backward_seconds_; }
  Logs validate(const Batch& batch, bool average) override;
  // <step>.png: the frames of a clip, one below the other, and <step>.gif; clips of several texts
  // side by side.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  // nuwa.<step>.pt, with the VAE's.
  std::vector<std::pair<std::string, Value>> weights(std::int64_t step, const Value& ema) override;
  std::string config() const override { return model_->config().to_json(); }

 private:
  torch::Tensor video(const Batch& batch) const;
  torch::Tensor text(const Batch& batch) const;
  torch::Tensor prompts() const;

  NuwaStageOptions options_;
  Nuwa model_;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  Optimizer optimizer_;
  double backward_seconds_ = 0;
};

}  // namespace millrace
