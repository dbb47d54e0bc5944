// Trains NUWA's text-to-video model: one phase, AdamW, no moving average, as in the Python trainer.
// The VAE is frozen.
//
//   NuwaStage stage(NuwaConfig{.dim = 256, .vae = vae->config()}, {});
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
  // <step>.png: the frames of the clips, one below the other. <step>.gif: the clips. Clips of
  // different texts are side by side.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  // File nuwa.<step>.pt, which includes the VAE's weights.
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
