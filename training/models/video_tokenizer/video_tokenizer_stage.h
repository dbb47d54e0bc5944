// Trains the video tokenizer of MAGVIT2: a generator phase, and one phase for all discriminators.
// As in the Python trainer, each phase reads its own batches, and every optimizer steps once per
// step.
//
//   VideoTokenizerStage stage(VideoTokenizerConfig{.image_size = 128, .codebook_size = 1024}, {});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

struct VideoTokenizerStageOptions {
  OptimizerOptions optimizer{
      .kind = OptimizerKind::adamw, .lr = 1e-5, .betas = {0.9, 0.99}, .weight_decay = 0.01};
  double max_grad_norm = 0;  // generator and each discriminator; 0 disables clipping
  std::int64_t apply_gradient_penalty_every = 4;
  // Factor of the adversarial losses, on top of the adaptive weight. Default: 1 with a perceptual
  // loss or with `compat`, as in the Python trainer; otherwise 0.1.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_after_step = 0;   // first step with discriminators
  std::int64_t validate_every_step = 100;    // interval by which sampled.<n>.gif is numbered
  std::int64_t num_save_recons = 1;          // clips in sampled.<n>.gif, one below the other
  bool sample_average = true;                // sample from the moving average instead of the model
  std::filesystem::path vgg{};               // VGG16 weights; empty: no perceptual loss
  std::string field = "video";               // batch field: float32 in [0, 1], channels first
  std::string valid_field = "valid_frames";  // batch field; empty: all frames are valid
  bool recompute = false;                    // gradient checkpointing: less memory, more time
  // Optimizer operations in the order of the Python package, so results are rounded the same way.
  bool compat = false;
  // Seed of the frames that discriminators see. They depend on the step and the clips, not on the
  // rank. (With `compat` they are drawn as in the Python trainer.)
  std::uint64_t seed = 0;
  torch::Device device = torch::kCPU;
};

class VideoTokenizerStage : public Stage {
 public:
  // Throws an Error of kind usage for models with conditional layers, because a folder of clips has
  // no conditions.
  VideoTokenizerStage(const VideoTokenizerConfig& config,
                      const VideoTokenizerStageOptions& options);

  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *average_; }
  std::vector<Phase> phases() override;
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  double backward_seconds() const override { return backward_seconds_; }
  // Returns "recon_loss", the mean over the clips.
  Logs validate(const Batch& batch, bool average) override;
  // Sample "sampled.<n>": input and reconstruction, side by side.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  AverageState average_state() const override {
    return {.name = "ema_model", .with_online_model = false};
  }
  std::string config() const override { return model_->config().to_json(); }

 private:
  struct Clips {
    torch::Tensor video;         // [rows, channels, frames, height, width]
    torch::Tensor valid_frames;  // [rows]; undefined: all frames are valid
  };

  // The batch's clips, without frames that are padding in every row.
  Clips clips(const Batch& batch) const;
  double adversarial_weight() const;
  void timed(const std::function<void()>& backward);
  Optimizer make_optimizer(std::vector<torch::Tensor> parameters) const;
  Logs generator_step(const Clips& clips, const MicroStep& micro);
  Logs discriminator_step(const Clips& clips, const MicroStep& micro);

  VideoTokenizerStageOptions options_;
  VideoTokenizer model_, average_;
  double backward_seconds_ = 0;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  Optimizer generator_;
  // The base discriminator's optimizer first, then the multi-scale discriminators'.
  std::vector<std::unique_ptr<Optimizer>> discriminators_;
};

}  // namespace millrace
