// Attention over space and over time, and the other layers that mix frames or pixels. Private to
// training/models.
#pragma once

#include "video_layers.h"

namespace millrace {

// RMS norm over the channels with a learned gain, which may be computed from a condition.
class RmsNorm : public torch::nn::Module {
 public:
  // `trailing`: number of dimensions after the channels; 0: channels are last. `cond`: size of the
  // condition; 0: unconditional.
  RmsNorm(std::int64_t dim, std::int64_t trailing, std::int64_t cond = 0);
  // x may have several sequences per row of `cond`, in the order of the rows.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond);

 private:
  double scale_;
  std::int64_t trailing_;
  torch::Tensor gamma_;
  torch::nn::Linear to_gamma_{nullptr};
};

// Linear attention with the second-order Taylor series of exp, over the pixels of each frame of
// [batch, channels, (frames,) height, width].
class LinearSpaceAttention : public VideoLayer {
 public:
  LinearSpaceAttention(std::int64_t dim, std::int64_t dim_head, std::int64_t heads,
                       std::int64_t cond = 0);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override;

 private:
  std::int64_t dim_head_, heads_;
  std::shared_ptr<RmsNorm> norm_;
  torch::nn::Linear to_q_, to_kv_, to_out_;
};

// The gated feed-forward layer after an attention, for pictures or for videos.
class VideoFeedForward : public VideoLayer {
 public:
  VideoFeedForward(std::int64_t dim, double mult, bool pictures, std::int64_t cond = 0);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override;

 private:
  std::shared_ptr<RmsNorm> norm_;
  // For pictures; the pair below is for videos.
  torch::nn::Conv2d in2d_{nullptr}, out2d_{nullptr};
  torch::nn::Conv3d in3d_{nullptr}, out3d_{nullptr};
};

// Makes a layer of type attend_space, attend_time, linear_attend_space or gateloop_time, or a
// conditional variant (cond_...).
VideoLayerPointer make_attention_layer(const VideoTokenizerConfig& config, const std::string& type,
                                       std::int64_t dim);

}  // namespace millrace
