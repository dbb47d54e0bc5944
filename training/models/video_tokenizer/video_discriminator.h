// The video tokenizer's discriminator: a realness score for each frame. Private to training/models.
#pragma once

#include "video_attention.h"

namespace millrace {

// Blurs with [1, 2, 1] in both directions, with replicated borders.
class Blur : public torch::nn::Module {
 public:
  Blur();
  torch::Tensor forward(const torch::Tensor& pictures) const;

 private:
  torch::Tensor filter_;  // in the state_dict, but not trained
};

class VideoDiscriminator : public torch::nn::Module {
 public:
  explicit VideoDiscriminator(const VideoDiscriminatorConfig& config);

  // Maps [batch, channels, height, width] to scores [batch].
  torch::Tensor forward(const torch::Tensor& pictures);
  // Scores all frames of [batch, channels, frames, height, width], downscaled by the configured
  // scale. Returns [batch * frames].
  torch::Tensor forward_video(const torch::Tensor& video);
  // See Note [channels last].
  void set_channels_last(bool channels_last) { channels_last_ = channels_last; }

 private:
  struct Block {
    torch::nn::Conv2d residual{nullptr}, first{nullptr}, second{nullptr};
    torch::nn::Conv2d downsample{nullptr};  // null in the last block
    std::shared_ptr<Blur> blur;             // null if not antialiased
    std::shared_ptr<LinearSpaceAttention> attention;
    std::shared_ptr<VideoFeedForward> feed_forward;
  };

  // Also returns the module to register.
  std::pair<Block, ModulePointer> make_block(std::int64_t in, std::int64_t out, bool last) const;
  torch::Tensor run(Block& block, const torch::Tensor& pictures);

  VideoDiscriminatorConfig config_;
  bool channels_last_ = false;
  std::vector<Block> blocks_;
  torch::nn::Conv2d last_{nullptr};
  torch::nn::Linear logits_{nullptr};
};

}  // namespace millrace
