// The self-attention of NUWA's VQGAN-VAE over all positions of a feature map. Private to
// training/models.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// A layer norm over the channels of [batch, channels, height, width].
class ChannelNormImpl : public torch::nn::Module {
 public:
  explicit ChannelNormImpl(std::int64_t dim);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor g_, b_;
};
TORCH_MODULE(ChannelNorm);

// Attention bias computed by a small MLP from the relative position.
class ContinuousPositionBiasImpl : public torch::nn::Module {
 public:
  ContinuousPositionBiasImpl(std::int64_t dim, std::int64_t heads);
  // Returns [heads, positions, positions] for a square feature map of size `side`.
  torch::Tensor forward(std::int64_t side, const torch::TensorOptions& options);

 private:
  std::vector<torch::nn::Linear> layers_;
};
TORCH_MODULE(ContinuousPositionBias);

class VqganAttentionImpl : public torch::nn::Module {
 public:
  VqganAttentionImpl(std::int64_t dim, std::int64_t heads, std::int64_t dim_head, double dropout);
  torch::Tensor forward(const torch::Tensor& x);
  // Lets packed_encoder.cc replace the two convolutions.
  using Layer = std::function<torch::Tensor(const torch::Tensor&)>;
  torch::Tensor attend(const torch::Tensor& x, const Layer& to_qkv, const Layer& to_out,
                       const torch::Tensor& bias);
  // Position bias [heads, positions, positions] for the feature map x.
  torch::Tensor bias(const torch::Tensor& x) { return cpb_->forward(x.size(2), x.options()); }
  const torch::nn::Conv2d& to_qkv() const { return to_qkv_; }
  const torch::nn::Conv2d& to_out() const { return to_out_; }

 private:
  std::int64_t heads_;
  double dropout_;
  torch::Tensor scale_;
  ChannelNorm post_norm_;
  ContinuousPositionBias cpb_;
  torch::nn::Conv2d to_qkv_, to_out_;
};
TORCH_MODULE(VqganAttention);

}  // namespace millrace
