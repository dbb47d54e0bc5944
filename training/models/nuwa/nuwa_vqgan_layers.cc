#include "nuwa_vqgan_layers.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <cmath>

namespace millrace {

namespace nn = torch::nn;

namespace {

constexpr double slope_below_zero = 0.1;

// The package divides by 1024 and multiplies again to keep float16 finite; this rounds, so it is
// reproduced.
torch::Tensor stable_softmax(const torch::Tensor& logits) {
  constexpr double alpha = 32 * 32;
  const torch::Tensor small = logits / alpha;
  return ((small - small.amax({-1}, true).detach()) * alpha).softmax(-1);
}

}  // namespace

ChannelNormImpl::ChannelNormImpl(std::int64_t dim)
    : g_(register_parameter("g", torch::ones({1, dim, 1, 1}))),
      b_(register_parameter("b", torch::zeros({1, dim, 1, 1}))) {}

torch::Tensor ChannelNormImpl::forward(const torch::Tensor& x) {
  const torch::Tensor variance = torch::var(x, {1}, /*unbiased=*/false, /*keepdim=*/true);
  return (x - x.mean({1}, true)) / (variance + 1e-5).sqrt() * g_ + b_;
}

ContinuousPositionBiasImpl::ContinuousPositionBiasImpl(std::int64_t dim, std::int64_t heads) {
  auto net = register_module("net", nn::ModuleList());
  auto activated = [&](std::int64_t in) {  // a linear layer as "0" of a Sequential
    nn::Sequential block(nn::Linear(in, dim));
    layers_.push_back(std::dynamic_pointer_cast<nn::LinearImpl>(block->ptr(0)));
    net->push_back(block);
  };
  activated(2);
  activated(dim);
  layers_.emplace_back(dim, heads);
  net->push_back(layers_.back());
}

torch::Tensor ContinuousPositionBiasImpl::forward(std::int64_t side,
                                                  const torch::TensorOptions& options) {
  const torch::Tensor along = torch::arange(side, options.dtype(torch::kFloat32));
  const torch::Tensor grid =
      torch::stack(torch::meshgrid({along, along}, "ij")).flatten(1).transpose(0, 1);
  const torch::Tensor distances = grid.unsqueeze(1) - grid.unsqueeze(0);
  torch::Tensor x = distances.sign() * (distances.abs() + 1).log();
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    x = torch::leaky_relu(project(layers_[i], x), slope_below_zero);
  }
  return project(layers_.back(), x).permute({2, 0, 1});
}

VqganAttentionImpl::VqganAttentionImpl(std::int64_t dim, std::int64_t heads, std::int64_t dim_head,
                                       double dropout)
    : heads_(heads),
      dropout_(dropout),
      scale_(register_parameter("scale", torch::ones({1, heads, 1, 1}) * std::log(0.01))),
      post_norm_(register_module("post_norm", ChannelNorm(dim))),
      cpb_(register_module("cpb", ContinuousPositionBias(dim / 4, heads))),
      to_qkv_(register_module(
          "to_qkv", nn::Conv2d(nn::Conv2dOptions(dim, 3 * heads * dim_head, 1).bias(false)))),
      to_out_(register_module("to_out", nn::Conv2d(nn::Conv2dOptions(heads * dim_head, dim, 1)))) {}

torch::Tensor VqganAttentionImpl::forward(const torch::Tensor& x) {
  return attend(
      x, [this](const torch::Tensor& y) { return to_qkv_->forward(y); },
      [this](const torch::Tensor& y) { return to_out_->forward(y); }, bias(x));
}

torch::Tensor VqganAttentionImpl::attend(const torch::Tensor& x, const Layer& to_qkv,
                                         const Layer& to_out, const torch::Tensor& bias) {
  const std::int64_t height = x.size(2), width = x.size(3);
  std::vector<torch::Tensor> qkv = to_qkv(x).chunk(3, 1);
  for (torch::Tensor& t : qkv) t = t.flatten(2).unflatten(1, {heads_, -1});  // b h c n
  // The package normalizes over positions instead of channels.
  auto unit = [](const torch::Tensor& t) {
    return nn::functional::normalize(t, nn::functional::NormalizeFuncOptions().dim(-1));
  };
  torch::Tensor logits =
      torch::einsum("bhci,bhcj->bhij", {unit(qkv[0]), unit(qkv[1])}) * scale_.exp();
  logits = logits + bias;
  torch::Tensor attention = stable_softmax(logits);
  if (dropout_ > 0) attention = torch::dropout(attention, dropout_, is_training());
  torch::Tensor out = torch::einsum("bhij,bhcj->bhci", {attention, qkv[2]});
  out = out.reshape({x.size(0), -1, height, width});
  return post_norm_->forward(to_out(out)) + x;
}

}  // namespace millrace
