// Trains the video tokenizer of MAGVIT2: a generator phase, and one for all discriminators, each
// with batches of its own, as the trainer in Python takes them. Every optimizer steps once a step.
//
//   VideoTokenizerStage stage(VideoTokenizerConfig{.image_size = 128, .codebook_size = 1024}, {});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_stage_options.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

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
