// The layers of the video tokenizer. Inputs and outputs are [batch, channels, frames, height,
// width]. Private to training/models.
#pragma once

#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_config.h>

#include <memory>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Copies x if it is not dense, as the package's layers do after a reshape. The memory layout
// decides how sums round.
torch::Tensor packed(const torch::Tensor& x);

// Note [channels last]: on a CPU, convolutions are faster on channels-last tensors. If
// set_channels_last() is on, the model converts videos to channels-last at its input, and each
// layer keeps the layout of its input. With `compat` all layouts are those of the package.
bool is_channels_last(const torch::Tensor& x);
torch::Tensor channels_last(const torch::Tensor& x);

class VideoLayer : public torch::nn::Module {
 public:
  // `cond`: [batch, size], used by conditional layers only.
  virtual torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) = 0;
};
using VideoLayerPointer = std::shared_ptr<VideoLayer>;

// A 3D convolution that is causal in time.
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

// A layer of the encoder and the corresponding layer of the decoder.
struct VideoLayerPair {
  VideoLayerPointer encoder, decoder;
};
VideoLayerPair make_video_layers(const VideoTokenizerConfig& config, const VideoLayerSpec& spec,
                                 std::int64_t dim_in, std::int64_t dim_out);

}  // namespace millrace
