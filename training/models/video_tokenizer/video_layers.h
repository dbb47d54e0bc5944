// The layers of the video tokenizer. All take and give [batch, channels, frames, height, width].
// Private to training/models.
#pragma once

#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_config.h>

#include <memory>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// The same values, laid out densely, as the package's layers have them after a change of shape: how
// sums are rounded depends on it.
torch::Tensor packed(const torch::Tensor& x);

// Note [channels last]: on a CPU convolutions run sooner if the channels of a pixel lie side by
// side in memory. A model that is told so hands its layers videos that lie like that, and layers
// give on what they get: they change shapes without going back to planes. With `compat` everything
// lies as in the package, where attention may leave channels last and the next layer does not care.
bool lies_channels_last(const torch::Tensor& x);
torch::Tensor channels_last(const torch::Tensor& x);

class VideoLayer : public torch::nn::Module {
 public:
  // `cond`: [batch, size], for conditional layers; others do not look at it.
  virtual torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) = 0;
};
using VideoLayerPointer = std::shared_ptr<VideoLayer>;

// A convolution that sees no later frame.
class CausalConv3d : public torch::nn::Module {
 public:
  CausalConv3d(std::int64_t in, std::int64_t out, const std::array<std::int64_t, 3>& kernel,
               std::string pad_mode = "constant");
  torch::Tensor forward(const torch::Tensor& x);
  const torch::Tensor& weight() const { return conv_->weight; }

 private:
  std::string pad_mode_;
  std::int64_t time_pad_;
  std::vector<std::int64_t> padding_;
  torch::nn::Conv3d conv_;
};

// The layer of a tokenizer's encoder, and the one of its decoder that undoes it.
struct VideoLayerPair {
  VideoLayerPointer encoder, decoder;
};
VideoLayerPair make_video_layers(const VideoTokenizerConfig& config, const VideoLayerSpec& spec,
                                 std::int64_t dim_in, std::int64_t dim_out);

}  // namespace millrace
