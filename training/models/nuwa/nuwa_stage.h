// Trains NUWA's text-to-video model: one phase, AdamW, no moving average, as in the Python trainer.
// The VAE is frozen.
//
//   NuwaStage stage(NuwaConfig{.dim = 256, .vae = vae->config()}, {});
//   load_weights("vae.9000.pt", state_tensors(*stage.nuwa()->vae()));
#pragma once

#include <millrace/decoders/text/tokenizer.h>
#include <millrace/training/loop/stage.h>
#include <millrace/training/models/nuwa/nuwa.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct NuwaStageOptions {
  OptimizerOptions optimizer{.kind = OptimizerKind::adamw, .lr = 3e-4, .weight_decay = 0.01};
  double max_grad_norm = 0.5;  // 0 disables clipping
  double cond_dropout_prob = 0.2;
  NuwaGenerateOptions generate{};  // for samples; num_frames 0: the length of a clip
  // Texts to generate samples for; empty: the first text of the validation batch.
  std::vector<std::string> prompts{};
  // Encodes the prompts, and decodes tokens for the log. May be null without prompts.
  std::shared_ptr<const Tokenizer> tokenizer{};
  // Batch fields. `video`: float32 [rows, channels, frames, height, width] in [0, 1], or codes of
  // any integer type. `tokens`: int64 [rows, words], padded with 0.
  std::string video = "video", tokens = "tokens";
  bool compat = false;     // operations and random draws in the order of the Python package
  std::uint64_t seed = 0;  // for dropping texts and for sampling
  torch::Device device = torch::kCPU;
};

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
