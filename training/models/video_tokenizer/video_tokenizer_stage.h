// Trains the video tokenizer of MAGVIT2: a generator phase, and one for all discriminators, each
// with batches of its own, as the trainer in Python takes them. Every optimizer steps once a step.
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
  double max_grad_norm = 0;  // of the generator, and of each discriminator; 0: not clipped
  std::int64_t apply_gradient_penalty_every = 4;
  // How much of the adversarial losses there is, beside the loss that they are weighed against; by
  // default 1 beside the perceptual loss, as in Python, and less beside the reconstruction alone.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_after_step = 0;   // until then without discriminators
  std::int64_t validate_every_step = 100;    // sampled.<n>.gif counts these
  std::int64_t num_save_recons = 1;          // clips in it, one below the other
  bool sample_average = true;                // it shows the moving average, not the model
  std::filesystem::path vgg{};               // VGG16's weights; empty: no perceptual loss
  std::string field = "video";               // of the batch: float32 in [0, 1], channels first
  std::string valid_field = "valid_frames";  // of the batch; empty: all frames count
  bool recompute = false;                    // activations, in the backward pass: less memory
  // Every operation of the optimizers in Python's order, so that sums round as its sums do.
  bool compat = false;
  // Of the frames that discriminators see: they depend on the step and the clips, not on which rank
  // has them. (With compat they are drawn as Python draws them.)
  std::uint64_t seed = 0;
  torch::Device device = torch::kCPU;
};

class VideoTokenizerStage : public Stage {
 public:
  // Throws an Error of kind usage for a model with conditional layers: a folder has no conditions.
  VideoTokenizerStage(const VideoTokenizerConfig& config,
                      const VideoTokenizerStageOptions& options);

  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *average_; }
  std::vector<Phase> phases() override;
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  double backward_seconds() const override { return backward_seconds_; }
  // "recon_loss": the mean over the clips.
  Logs validate(const Batch& batch, bool average) override;
  // "sampled.<n>": the clip beside its reconstruction.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  AverageState average_state() const override {
    return {.name = "ema_model", .with_online_model = false};
  }
  std::string config() const override { return model_->config().to_json(); }

 private:
  struct Clips {
    torch::Tensor video;         // [rows, channels, frames, height, width]
    torch::Tensor valid_frames;  // [rows], or undefined: all
  };

  // Without frames that are filling in every row.
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
  // The base discriminator's first, then those of the multi-scale ones.
  std::vector<std::unique_ptr<Optimizer>> discriminators_;
};

}  // namespace millrace
