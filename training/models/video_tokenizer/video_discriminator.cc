#include "video_discriminator.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace millrace {

namespace nn = torch::nn;

namespace {

constexpr double slope = 0.1;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

// Like pixel_unshuffle, but the gradient has the package's memory layout, which decides how sums
// round.
torch::Tensor space_to_depth(const torch::Tensor& x) {
  const std::int64_t height = x.size(2) / 2, width = x.size(3) / 2;
  return x.reshape({x.size(0), x.size(1), height, 2, width, 2})
      .permute({0, 1, 3, 5, 2, 4})
      .reshape({x.size(0), -1, height, width});
}

// The same for channels-last tensors.
torch::Tensor space_to_depth_channels_last(const torch::Tensor& x) {
  const std::int64_t height = x.size(2) / 2, width = x.size(3) / 2;
  return x.permute({0, 2, 3, 1})
      .reshape({x.size(0), height, 2, width, 2, x.size(1)})
      .permute({0, 1, 3, 5, 2, 4})
      .reshape({x.size(0), height, width, -1})
      .permute({0, 3, 1, 2});
}

// Workaround for LibTorch: the backward pass of a strided 1x1 convolution writes out of bounds if a
// channels-last input has fewer than 8 channels. Padding with zero channels to 8 does not change
// any sum.
torch::Tensor one_by_one(nn::Conv2d& conv, const torch::Tensor& pictures) {
  const std::int64_t missing = 8 - pictures.size(1);
  const bool strided = conv->options.stride()->front() > 1;
  if (!strided || missing <= 0 || !is_channels_last(pictures)) return conv->forward(pictures);
  auto padded = [&](const torch::Tensor& t) { return torch::pad(t, {0, 0, 0, 0, 0, missing}); };
  return torch::conv2d(padded(pictures), padded(conv->weight), conv->bias, conv->options.stride());
}

}  // namespace

Blur::Blur() : filter_(register_buffer("f", torch::tensor({1.F, 2.F, 1.F}))) {}

// A 3D convolution over one frame, as in the package; a 2D convolution rounds differently.
torch::Tensor Blur::forward(const torch::Tensor& pictures) const {
  torch::Tensor kernel = filter_.unsqueeze(1) * filter_.unsqueeze(0);
  kernel = kernel / kernel.abs().sum();
  const std::int64_t channels = pictures.size(1);
  const torch::Tensor padded = torch::pad(pictures.unsqueeze(2), {1, 1, 1, 1, 0, 0}, "replicate");
  const std::array<std::int64_t, 3> one{1, 1, 1}, none{0, 0, 0};
  return torch::conv3d(padded, kernel.expand({channels, 1, 1, 3, 3}).contiguous(), {}, one, none,
                       one, channels)
      .squeeze(2);
}

std::pair<VideoDiscriminator::Block, ModulePointer> VideoDiscriminator::make_block(
    std::int64_t in, std::int64_t out, bool last) const {
  Block block;
  block.residual = conv(in, out, 1, last ? 1 : 2);
  block.first = conv(in, out, 3);
  block.second = conv(out, out, 3);
  std::vector<std::pair<std::string, ModulePointer>> parts{
      {"conv_res", block.residual.ptr()},
      {"net", named({{"0", block.first.ptr()}, {"2", block.second.ptr()}})}};
  if (config_.antialiased_downsample) {  // the last block has a blur too, which is never used
    block.blur = std::make_shared<Blur>();
    parts.emplace_back("maybe_blur", block.blur);
  }
  if (!last) {
    block.downsample = conv(out * 4, out, 1);
    parts.emplace_back("downsample", named({{"1", block.downsample.ptr()}}));
  }
  block.attention = std::make_shared<LinearSpaceAttention>(out, config_.linear_attn_dim_head,
                                                           config_.linear_attn_heads);
  block.feed_forward = std::make_shared<VideoFeedForward>(out, config_.ff_mult, /*pictures=*/true);
  const ModulePointer attend =
      named({{"0", named({{"fn", block.attention}})}, {"1", named({{"fn", block.feed_forward}})}});
  return {block, named({{"0", named(parts)}, {"1", attend}})};
}

VideoDiscriminator::VideoDiscriminator(const VideoDiscriminatorConfig& config) : config_(config) {
  const auto halvings =
      static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(config.image_size))) - 3;
  std::int64_t in = std::min(config.channels, config.max_dim);
  std::vector<std::pair<std::string, ModulePointer>> modules;
  for (std::int64_t i = 0; i <= halvings; ++i) {
    const std::int64_t out = std::min((config.dim * 4) << i, config.max_dim);
    auto [block, module] = make_block(in, out, i == halvings);
    blocks_.push_back(std::move(block));
    modules.emplace_back(std::to_string(i), std::move(module));
    in = out;
  }
  register_module("blocks", named(modules));
  const std::int64_t side = config.image_size >> halvings;
  last_ = conv(in, in, 3);
  logits_ = nn::Linear(side * side * in, 1);
  register_module("to_logits", named({{"0", last_.ptr()}, {"3", logits_.ptr()}}));
}

torch::Tensor VideoDiscriminator::run(Block& block, const torch::Tensor& pictures) {
  const torch::Tensor residual = one_by_one(block.residual, pictures);
  torch::Tensor x = torch::leaky_relu(block.first->forward(pictures), slope);
  x = torch::leaky_relu(block.second->forward(x), slope);
  if (block.downsample) {
    if (block.blur) x = block.blur->forward(x);
    const bool last = channels_last_ && is_channels_last(x);
    x = block.downsample->forward(last ? space_to_depth_channels_last(x) : space_to_depth(x));
  }
  x = (x + residual) * std::sqrt(0.5);
  x = block.attention->forward(x, {}) + x;
  return block.feed_forward->forward(x, {}) + x;
}

torch::Tensor VideoDiscriminator::forward(const torch::Tensor& pictures) {
  torch::Tensor x = channels_last_ ? channels_last(pictures) : pictures;
  for (Block& block : blocks_) x = run(block, x);
  x = torch::leaky_relu(last_->forward(x), slope);
  return project(logits_, x.flatten(1)).squeeze(-1);
}

torch::Tensor VideoDiscriminator::forward_video(const torch::Tensor& video) {
  torch::Tensor frames = video.transpose(1, 2).flatten(0, 1);
  if (config_.scale > 1) frames = torch::avg_pool2d(frames, config_.scale);
  return forward(frames);
}

}  // namespace millrace
