// The networks of the VQGAN-VAE: convolutional encoder and decoder, and the patch discriminator.
// Private to training/models.
#pragma once

#include <millrace/training/models/vqgan/vqgan_config.h>

#include <vector>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/normalization.h>

namespace millrace {

torch::nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                       std::int64_t padding = 0, std::int64_t stride = 1);
torch::nn::LeakyReLU leaky();

// A convolution, an optional norm and the activation, registered as "0", "1", ... as in a
// Sequential. LibTorch's Sequential cannot be nested in another Sequential.
class ConvBlockImpl : public torch::nn::Module {
 public:
  explicit ConvBlockImpl(torch::nn::Sequential parts);
  torch::Tensor forward(const torch::Tensor& x) { return parts_->forward(x); }
  const torch::nn::Sequential& parts() const { return parts_; }

 private:
  // Not registered, because its name would become part of the parameter names.
  torch::nn::Sequential parts_;
};
TORCH_MODULE(ConvBlock);

// x + net(x)
class ResidualImpl : public torch::nn::Module {
 public:
  explicit ResidualImpl(torch::nn::Sequential net) : net_(register_module("net", std::move(net))) {}
  torch::Tensor forward(const torch::Tensor& x) { return net_->forward(x) + x; }
  const torch::nn::Sequential& net() const { return net_; }

 private:
  torch::nn::Sequential net_;
};
TORCH_MODULE(Residual);

Residual encoder_block(std::int64_t dim, std::int64_t groups);
Residual decoder_block(std::int64_t dim, std::int64_t groups);

class EncoderDecoderImpl : public torch::nn::Module {
 public:
  explicit EncoderDecoderImpl(const VqganConfig& config);

  torch::Tensor encode(const torch::Tensor& image) { return encoders_->forward(image); }
  const torch::nn::Sequential& encoders() const { return encoders_; }
  torch::Tensor decode(const torch::Tensor& features) { return decoders_->forward(features); }
  // Weight of the last convolution. The adaptive weight is computed from gradients with respect to
  // it.
  torch::Tensor last_weight() const { return last_->weight; }

 private:
  torch::nn::Sequential encoders_, decoders_;
  torch::nn::Conv2d last_{nullptr};
};
TORCH_MODULE(EncoderDecoder);

class DiscriminatorImpl : public torch::nn::Module {
 public:
  // `dims`: channels of the first layer and of each downsampling layer.
  DiscriminatorImpl(std::int64_t channels, const std::vector<std::int64_t>& dims);

  torch::Tensor forward(const torch::Tensor& image) {
    return to_logits_->forward(layers_->forward(image));
  }

  struct Slope {
    torch::Tensor logits;
    torch::Tensor gradient;  // d sum(logits) / d image, itself differentiable
  };
  // Note [gradient penalty]: autograd can differentiate its own backward pass, but the double
  // backward of a convolution uses the whole picture as a kernel, which takes many times longer
  // than everything else. Here the backward pass is written as a forward pass of transposed
  // convolutions, whose backward pass is an ordinary one.
  Slope slope(const torch::Tensor& image);

 private:
  // A convolution, an optional norm and an optional activation.
  struct Layer {
    torch::nn::Conv2d conv;
    torch::nn::GroupNorm norm{nullptr};
    bool active = true;
  };

  torch::nn::Sequential layers_, to_logits_;
  std::vector<Layer> all_;  // the layers above, in forward order
};
TORCH_MODULE(Discriminator);

}  // namespace millrace
