// The networks inside the VQGAN-VAE: the convolutional encoder and decoder, and the discriminator
// that looks at patches. Private to training/models.
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

// A convolution, perhaps a norm, and the activation: "0", "1" and so on, as in a Sequential.
// LibTorch's own Sequential cannot stand inside another.
class ConvBlockImpl : public torch::nn::Module {
 public:
  explicit ConvBlockImpl(torch::nn::Sequential parts);
  torch::Tensor forward(const torch::Tensor& x) { return parts_->forward(x); }
  const torch::nn::Sequential& parts() const { return parts_; }

 private:
  torch::nn::Sequential parts_;  // not registered itself: its name would come between
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
  // Of the last convolution, whose gradient weighs the losses against each other.
  torch::Tensor last_weight() const { return last_->weight; }

 private:
  torch::nn::Sequential encoders_, decoders_;
  torch::nn::Conv2d last_{nullptr};
};
TORCH_MODULE(EncoderDecoder);

class DiscriminatorImpl : public torch::nn::Module {
 public:
  // `dims`: of the first layer, and of each that halves the sides.
  DiscriminatorImpl(std::int64_t channels, const std::vector<std::int64_t>& dims);

  torch::Tensor forward(const torch::Tensor& image) {
    return to_logits_->forward(layers_->forward(image));
  }

  struct Slope {
    torch::Tensor logits;
    torch::Tensor gradient;  // of the sum of the logits by the image, differentiable itself
  };
  // Note [gradient penalty]: autograd can differentiate its own backward pass, but for a
  // convolution it then takes the whole picture for a kernel, which is many times slower than all
  // the rest. Here the backward pass is written as a forward pass, of transposed convolutions,
  // whose own backward pass is an ordinary one.
  Slope slope(const torch::Tensor& image);

 private:
  // A convolution, perhaps a norm, perhaps the activation.
  struct Layer {
    torch::nn::Conv2d conv;
    torch::nn::GroupNorm norm{nullptr};
    bool active = true;
  };

  torch::nn::Sequential layers_, to_logits_;
  std::vector<Layer> all_;  // the same, in their order
};
TORCH_MODULE(Discriminator);

}  // namespace millrace
