// Attention over space and over time, and what else mixes the frames of a video or the pixels of a
// picture. Private to training/models.
#pragma once

#include "video_layers.h"

namespace millrace {

// To unit length over the channels, times a learned factor, which may come from a condition.
class RmsNorm : public torch::nn::Module {
 public:
  // `trailing`: dimensions after the channels; 0: the channels are last. `cond`: its size, or 0.
  RmsNorm(std::int64_t dim, std::int64_t trailing, std::int64_t cond = 0);
  // Sequences may be several to each row of `cond`, in its order.
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

// The gated layer that follows an attention; for pictures or for videos.
class VideoFeedForward : public VideoLayer {
 public:
  VideoFeedForward(std::int64_t dim, double mult, bool pictures, std::int64_t cond = 0);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override;

 private:
  std::shared_ptr<RmsNorm> norm_;
  // One or the other pair.
  torch::nn::Conv2d in2d_{nullptr}, out2d_{nullptr};
  torch::nn::Conv3d in3d_{nullptr}, out3d_{nullptr};
};

// One of the types that mix: attend_space, attend_time, linear_attend_space, gateloop_time, and
// their conditional kinds.
VideoLayerPointer make_attention_layer(const VideoTokenizerConfig& config, const std::string& type,
                                       std::int64_t dim);

}  // namespace millrace
