// Trains the video tokenizer of MAGVIT2: a generator phase, and one phase for all discriminators.
// As in the Python trainer, each phase reads its own batches, and every optimizer steps once per
// step.
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
