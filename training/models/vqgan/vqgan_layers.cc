#include "vqgan_layers.h"

#include <millrace/training/device/torch_api.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

constexpr double slope_below_zero = 0.1;
constexpr std::int64_t discriminator_groups = 16;
constexpr std::int64_t discriminator_kernel = 5;

}  // namespace

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t padding,
                std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(padding).stride(stride));
}

nn::LeakyReLU leaky() {
  return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(slope_below_zero));
}

ConvBlockImpl::ConvBlockImpl(nn::Sequential parts) : parts_(std::move(parts)) {
  for (const auto& item : parts_->named_children()) register_module(item.key(), item.value());
}

Residual encoder_block(std::int64_t dim, std::int64_t groups) {
  return Residual(nn::Sequential(conv(dim, dim, 3, 1), nn::GroupNorm(groups, dim), leaky(),
                                 conv(dim, dim, 3, 1), nn::GroupNorm(groups, dim), leaky(),
                                 conv(dim, dim, 1)));
}

Residual decoder_block(std::int64_t dim, std::int64_t groups) {
  const auto glu = nn::GLUOptions(1);
  return Residual(nn::Sequential(conv(dim, 2 * dim, 3, 1), nn::GLU(glu), nn::GroupNorm(groups, dim),
                                 conv(dim, 2 * dim, 3, 1), nn::GLU(glu), nn::GroupNorm(groups, dim),
                                 conv(dim, dim, 1)));
}

namespace {

nn::ConvTranspose2d upsample(std::int64_t in, std::int64_t out) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, out, 4).stride(2).padding(1));
}

}  // namespace

// Layers are constructed in the order of the Python package: the same seed gives the same initial
// weights.
EncoderDecoderImpl::EncoderDecoderImpl(const VqganConfig& config) {
  std::vector<nn::AnyModule> encoders, decoders;  // decoders: from the last layer to the first
  std::int64_t in = config.dim;
  const std::vector<std::int64_t> dims = config.layer_dims();
  const std::vector<std::int64_t> blocks = config.blocks_per_layer();
  for (std::size_t layer = 0; layer < dims.size(); ++layer) {
    const std::int64_t out = dims[layer];
    encoders.emplace_back(ConvBlock(nn::Sequential(conv(in, out, 4, 1, 2), leaky())));
    decoders.emplace_back(ConvBlock(nn::Sequential(upsample(out, in), leaky())));
    for (std::int64_t i = 0; i < blocks[layer]; ++i) {
      encoders.emplace_back(encoder_block(out, config.resnet_groups));
      decoders.emplace_back(decoder_block(out, config.resnet_groups));
    }
    in = out;
  }
  const std::int64_t kernel = config.first_conv_kernel_size;
  encoders_->push_back(conv(config.channels, config.dim, kernel, kernel / 2));
  for (nn::AnyModule& module : encoders) encoders_->push_back(std::move(module));
  for (std::size_t i = decoders.size(); i > 0; --i)
    decoders_->push_back(std::move(decoders[i - 1]));
  last_ = conv(config.dim, config.channels, 1);
  decoders_->push_back(last_);
  register_module("encoders", encoders_);
  register_module("decoders", decoders_);
}

DiscriminatorImpl::DiscriminatorImpl(std::int64_t channels, const std::vector<std::int64_t>& dims) {
  constexpr std::int64_t kernel = discriminator_kernel;
  std::int64_t in = dims.at(0);
  all_.push_back({.conv = conv(channels, in, kernel, kernel / 2)});
  layers_->push_back(ConvBlock(nn::Sequential(all_.back().conv, leaky())));
  for (std::size_t layer = 1; layer < dims.size(); ++layer) {
    const std::int64_t out = dims[layer];
    all_.push_back(
        {.conv = conv(in, out, 4, 1, 2), .norm = nn::GroupNorm(discriminator_groups, out)});
    layers_->push_back(ConvBlock(nn::Sequential(all_.back().conv, all_.back().norm, leaky())));
    in = out;
  }
  all_.push_back({.conv = conv(in, in, 1)});
  all_.push_back({.conv = conv(in, 1, 4), .active = false});
  to_logits_ = nn::Sequential(all_[all_.size() - 2].conv, leaky(), all_.back().conv);
  register_module("layers", layers_);
  register_module("to_logits", to_logits_);
}

namespace {

// Backward pass of a group norm, written as a differentiable function of its inputs.
torch::Tensor through_norm(const torch::Tensor& gradient, const torch::Tensor& input,
                           const nn::GroupNorm& norm) {
  const std::int64_t batch = input.size(0), groups = norm->options.num_groups();
  const torch::Tensor x = input.reshape({batch, groups, -1});
  const torch::Tensor centred = x - x.mean(-1, true);
  const torch::Tensor inverse = (centred.square().mean(-1, true) + norm->options.eps()).rsqrt();
  const torch::Tensor unit = centred * inverse;
  const torch::Tensor g = (gradient * norm->weight.view({1, -1, 1, 1})).reshape(x.sizes());
  const torch::Tensor along = (g * unit).mean(-1, true);
  return ((g - g.mean(-1, true) - unit * along) * inverse).reshape(input.sizes());
}

// Backward pass of a convolution: the gradient for an input of size `input`.
torch::Tensor through_conv(const torch::Tensor& gradient, c10::IntArrayRef input,
                           const nn::Conv2d& conv) {
  const auto& o = conv->options;
  const std::int64_t stride = o.stride()->at(0), kernel = o.kernel_size()->at(0);
  const std::int64_t padding = std::get<torch::ExpandingArray<2>>(o.padding())->at(0);
  // output_padding: the rows or columns lost to rounding in the strided forward pass
  auto missing = [&](std::size_t side) {
    const std::int64_t least =
        (gradient.size(static_cast<std::int64_t>(side)) - 1) * stride - 2 * padding + kernel;
    return input[side] - least;
  };
  return torch::conv_transpose2d(gradient, conv->weight, {}, stride, padding,
                                 {missing(2), missing(3)});
}

}  // namespace

DiscriminatorImpl::Slope DiscriminatorImpl::slope(const torch::Tensor& image) {
  std::vector<torch::Tensor> inputs, convolved, normed;
  torch::Tensor x = image;
  for (Layer& layer : all_) {
    inputs.push_back(x);
    convolved.push_back(layer.conv->forward(x));
    normed.push_back(layer.norm ? layer.norm->forward(convolved.back()) : convolved.back());
    x = layer.active ? torch::leaky_relu(normed.back(), slope_below_zero) : normed.back();
  }
  torch::Tensor gradient = torch::ones_like(x);
  for (std::size_t i = all_.size(); i-- > 0;) {
    const Layer& layer = all_[i];
    if (layer.active) {
      gradient = at::leaky_relu_backward(gradient, normed[i].detach(), slope_below_zero, false);
    }
    if (layer.norm) gradient = through_norm(gradient, convolved[i], layer.norm);
    gradient = through_conv(gradient, inputs[i].sizes(), layer.conv);
  }
  return {x, gradient};
}

}  // namespace millrace
