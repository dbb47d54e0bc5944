#include "video_layers.h"

#include "video_attention.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <algorithm>
#include <cmath>

namespace millrace {

namespace nn = torch::nn;

namespace {

// [batch, channels, frames, height, width] to [batch * frames, channels, height, width].
torch::Tensor frames_as_batch(const torch::Tensor& x) {
  return x.transpose(1, 2).flatten(0, 1);
}

torch::Tensor packed_frames(const torch::Tensor& x) {
  return packed(frames_as_batch(x));
}

torch::Tensor frames_from_batch(const torch::Tensor& x, std::int64_t batch) {
  return x.unflatten(0, {batch, -1}).transpose(1, 2);
}

// [batch * height * width, channels, frames]
torch::Tensor pixels_as_batch(const torch::Tensor& x) {
  return packed(x.permute({0, 3, 4, 1, 2}).flatten(0, 2));
}

torch::Tensor pixels_from_batch(const torch::Tensor& y, const torch::Tensor& like) {
  return y.unflatten(0, {like.size(0), like.size(3), like.size(4)}).permute({0, 3, 4, 1, 2});
}

// Squeeze-and-excitation: gates the channels of each frame by a weighted mean over the frame.
class SqueezeExcite : public nn::Module {
 public:
  explicit SqueezeExcite(std::int64_t dim)
      : to_k_(nn::Conv2dOptions(dim, 1, 1)),
        squeeze_(nn::Conv2dOptions(dim, hidden(dim), 1)),
        excite_(nn::Conv2dOptions(hidden(dim), dim, 1)) {
    register_module("to_k", to_k_);
    register_module("net", named({{"0", squeeze_.ptr()}, {"2", excite_.ptr()}}));
    nn::init::zeros_(excite_->weight);
    nn::init::constant_(excite_->bias, -10);  // gates start closed
  }

  torch::Tensor forward(const torch::Tensor& video) {
    const torch::Tensor x = frames_as_batch(video);
    const torch::Tensor where = to_k_->forward(x).flatten(2).softmax(-1);
    // reshape(), not unsqueeze(): the strides decide which convolution LibTorch chooses, and so the
    // rounding.
    torch::Tensor gates =
        torch::einsum("bin,bcn->bci", {where, x.flatten(2)}).reshape({x.size(0), x.size(1), 1, 1});
    gates = torch::leaky_relu(squeeze_->forward(gates), 0.1);
    gates = excite_->forward(gates).sigmoid();
    return frames_from_batch(gates, video.size(0)) * video;
  }

 private:
  static std::int64_t hidden(std::int64_t dim) { return std::max<std::int64_t>(16, dim / 2); }

  nn::Conv2d to_k_, squeeze_, excite_;
};

class ResidualUnit : public VideoLayer {
 public:
  ResidualUnit(std::int64_t dim, const std::array<std::int64_t, 3>& kernel)
      : conv_(std::make_shared<CausalConv3d>(dim, dim, kernel)),
        mix_(nn::Conv3dOptions(dim, dim, 1)),
        gate_(std::make_shared<SqueezeExcite>(dim)) {
    register_module("fn", named({{"0", conv_}, {"2", mix_.ptr()}, {"4", gate_}}));
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*cond*/) override {
    const torch::Tensor y = torch::elu(mix_->forward(torch::elu(conv_->forward(x))));
    return gate_->forward(y) + x;
  }

 private:
  std::shared_ptr<CausalConv3d> conv_;
  nn::Conv3d mix_;
  std::shared_ptr<SqueezeExcite> gate_;
};

class ConsecutiveResidual : public VideoLayer {
 public:
  ConsecutiveResidual(std::int64_t count, std::int64_t dim,
                      const std::array<std::int64_t, 3>& kernel) {
    for (std::int64_t i = 0; i < count; ++i) {
      units_.push_back(std::make_shared<ResidualUnit>(dim, kernel));
      register_module(std::to_string(i), units_.back());
    }
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override {
    torch::Tensor y = x;
    for (const auto& unit : units_) y = unit->forward(y, cond);
    return y;
  }

 private:
  std::vector<std::shared_ptr<ResidualUnit>> units_;
};

// A modulated convolution: the weights are scaled by the condition and then normalized, for each
// video separately.
class ModulatedConv3d : public nn::Module {
 public:
  ModulatedConv3d(std::int64_t dim, const std::array<std::int64_t, 3>& kernel)
      : padding_{kernel[2] / 2, kernel[2] / 2, kernel[1] / 2, kernel[1] / 2, kernel[0] - 1, 0} {
    const torch::Tensor weights = torch::randn({dim, dim, kernel[0], kernel[1], kernel[2]});
    const auto inputs = static_cast<double>(dim * kernel[0] * kernel[1] * kernel[2]);
    nn::init::normal_(weights, 0, 0.75 / std::sqrt(inputs));
    weights_ = register_parameter("weights", weights);
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) {
    const std::int64_t batch = x.size(0);
    torch::Tensor weights = weights_ * (cond.reshape({batch, 1, -1, 1, 1, 1}) + 1);
    weights = weights * weights.square().sum({2, 3, 4, 5}, true).clamp_min(1e-8).rsqrt();
    const torch::Tensor padded = torch::pad(x.flatten(0, 1).unsqueeze(0), padding_);
    const std::array<std::int64_t, 3> one{1, 1, 1}, none{0, 0, 0};
    return torch::conv3d(padded, weights.flatten(0, 1), {}, one, none, one, batch)
        .squeeze(0)
        .unflatten(0, {batch, -1});
  }

 private:
  std::vector<std::int64_t> padding_;
  torch::Tensor weights_;
};

class ConditionalResidual : public VideoLayer {
 public:
  ConditionalResidual(std::int64_t dim, const std::array<std::int64_t, 3>& kernel,
                      std::int64_t cond)
      : to_cond_(register_module("to_cond", nn::Linear(cond, dim))),
        conv_(register_module("conv", std::make_shared<ModulatedConv3d>(dim, kernel))),
        conv_out_(register_module("conv_out", nn::Conv3d(nn::Conv3dOptions(dim, dim, 1)))) {}
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override {
    const torch::Tensor y = conv_->forward(x, project(to_cond_, cond));
    return torch::elu(conv_out_->forward(torch::elu(y))) + x;
  }

 private:
  nn::Linear to_cond_;
  std::shared_ptr<ModulatedConv3d> conv_;
  nn::Conv3d conv_out_;
};

class SpaceDownsample : public VideoLayer {
 public:
  SpaceDownsample(std::int64_t in, std::int64_t out)
      : conv_(register_module("conv",
                              nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(2).padding(1)))) {}
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*cond*/) override {
    return frames_from_batch(conv_->forward(packed_frames(x)), x.size(0));
  }

 private:
  nn::Conv2d conv_;
};

// Applies a convolution over the frames of each pixel to a whole video, without changing the
// layout.
torch::Tensor over_time(const nn::Conv1d& conv, const torch::Tensor& video, std::int64_t stride) {
  const torch::Tensor weight = conv->weight.unsqueeze(-1).unsqueeze(-1);
  const std::array<std::int64_t, 3> strides{stride, 1, 1}, none{0, 0, 0}, one{1, 1, 1};
  return torch::conv3d(video, weight, conv->bias, strides, none, one);
}

class TimeDownsample : public VideoLayer {
 public:
  TimeDownsample(std::int64_t in, std::int64_t out, bool compat)
      : conv_(register_module("conv", nn::Conv1d(nn::Conv1dOptions(in, out, 3).stride(2)))),
        compat_(compat) {}
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*cond*/) override {
    if (!compat_ && is_channels_last(x)) {
      return over_time(conv_, torch::pad(x, {0, 0, 0, 0, 2, 0}), 2);
    }
    return pixels_from_batch(conv_->forward(torch::pad(pixels_as_batch(x), {2, 0})), x);
  }

 private:
  nn::Conv1d conv_;
  bool compat_;
};

// Initializes the weights so that all `copies` upsampled pixels of one input pixel start equal.
template <class Conv>
void init_copies_equal(Conv& conv, std::int64_t copies) {
  std::vector<std::int64_t> shape = conv->weight.sizes().vec();
  shape[0] /= copies;
  const torch::Tensor first = torch::empty(shape);
  nn::init::kaiming_uniform_(first);
  torch::NoGradGuard no_grad;
  conv->weight.copy_(first.repeat_interleave(copies, 0));
  conv->bias.zero_();
}

// Like pixel_shuffle, but with the package's memory layout, which decides how sums round.
torch::Tensor depth_to_space(const torch::Tensor& x) {
  const std::int64_t height = x.size(2), width = x.size(3);
  return x.reshape({x.size(0), -1, 2, 2, height, width})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape({x.size(0), -1, height * 2, width * 2});
}

// The same for channels-last tensors.
torch::Tensor depth_to_space_channels_last(const torch::Tensor& x) {
  const std::int64_t height = x.size(2), width = x.size(3);
  return x.permute({0, 2, 3, 1})
      .reshape({x.size(0), height, width, -1, 2, 2})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape({x.size(0), height * 2, width * 2, -1})
      .permute({0, 3, 1, 2});
}

class SpaceUpsample : public VideoLayer {
 public:
  SpaceUpsample(std::int64_t in, std::int64_t out, bool compat)
      : conv_(nn::Conv2dOptions(in, out * 4, 1)), compat_(compat) {
    register_module("net", named({{"0", conv_.ptr()}}));
    init_copies_equal(conv_, 4);
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*cond*/) override {
    const torch::Tensor y = torch::silu(conv_->forward(packed_frames(x)));
    const bool last = !compat_ && is_channels_last(y);
    return frames_from_batch(last ? depth_to_space_channels_last(y) : depth_to_space(y), x.size(0));
  }

 private:
  nn::Conv2d conv_;
  bool compat_;
};

class TimeUpsample : public VideoLayer {
 public:
  TimeUpsample(std::int64_t in, std::int64_t out, bool compat)
      : conv_(nn::Conv1dOptions(in, out * 2, 1)), compat_(compat) {
    register_module("net", named({{"0", conv_.ptr()}}));
    init_copies_equal(conv_, 2);
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*cond*/) override {
    if (!compat_ && is_channels_last(x)) {
      const torch::Tensor y = torch::silu(over_time(conv_, x, 1));
      // [batch, frames, height, width, channels, 2] to [batch, frames, 2, height, width, channels]
      const torch::Tensor apart =
          y.permute({0, 2, 3, 4, 1}).unflatten(4, {-1, 2}).permute({0, 1, 5, 2, 3, 4});
      return apart.flatten(1, 2).permute({0, 4, 1, 2, 3});
    }
    const torch::Tensor y = torch::silu(conv_->forward(pixels_as_batch(x)));
    return pixels_from_batch(y.unflatten(1, {-1, 2}).transpose(2, 3).flatten(2), x);
  }

 private:
  nn::Conv1d conv_;
  bool compat_;
};

VideoLayerPointer make(const VideoTokenizerConfig& config, const VideoLayerSpec& spec,
                       std::int64_t dim, std::int64_t dim_out, bool decoder) {
  const std::string& type = spec.type;
  const auto& kernel = config.residual_conv_kernel_size;
  if (type == "residual") return std::make_shared<ResidualUnit>(dim, kernel);
  if (type == "consecutive_residual") {
    return std::make_shared<ConsecutiveResidual>(*spec.size, dim, kernel);
  }
  if (type == "cond_residual") {
    return std::make_shared<ConditionalResidual>(dim, kernel, config.expanded_cond());
  }
  if (type == "compress_space") {
    if (decoder) return std::make_shared<SpaceUpsample>(dim_out, dim, config.compat);
    return std::make_shared<SpaceDownsample>(dim, dim_out);
  }
  if (type == "compress_time") {
    if (decoder) return std::make_shared<TimeUpsample>(dim_out, dim, config.compat);
    return std::make_shared<TimeDownsample>(dim, dim_out, config.compat);
  }
  return make_attention_layer(config, type, dim);
}

}  // namespace

torch::Tensor packed(const torch::Tensor& x) {
  return x.is_contiguous(x.suggest_memory_format()) ? x : torch::cat({x}, 0);
}

bool is_channels_last(const torch::Tensor& x) {
  const auto format =
      x.dim() == 5 ? torch::MemoryFormat::ChannelsLast3d : torch::MemoryFormat::ChannelsLast;
  return x.is_contiguous(format) && !x.is_contiguous();
}

torch::Tensor channels_last(const torch::Tensor& x) {
  return x.contiguous(x.dim() == 5 ? torch::MemoryFormat::ChannelsLast3d
                                   : torch::MemoryFormat::ChannelsLast);
}

CausalConv3d::CausalConv3d(std::int64_t in, std::int64_t out,
                           const std::array<std::int64_t, 3>& kernel, std::string pad_mode)
    : pad_mode_(std::move(pad_mode)),
      time_pad_(kernel[0] - 1),
      padding_{kernel[2] / 2, kernel[2] / 2, kernel[1] / 2, kernel[1] / 2, time_pad_, 0},
      conv_(nn::Conv3dOptions(in, out, {kernel[0], kernel[1], kernel[2]})) {
  register_module("conv", conv_);
}

torch::Tensor CausalConv3d::forward(const torch::Tensor& x) {
  // As in the package: clips that are too short for pad_mode in time are padded with zeros in all
  // dimensions.
  const std::string mode = time_pad_ < x.size(2) ? pad_mode_ : "constant";
  return conv_->forward(torch::pad(x, padding_, mode));
}

VideoLayerPair make_video_layers(const VideoTokenizerConfig& config, const VideoLayerSpec& spec,
                                 std::int64_t dim_in, std::int64_t dim_out) {
  // Constructed in the order of the Python package: the same seed gives the same weights.
  VideoLayerPair pair;
  pair.encoder = make(config, spec, dim_in, dim_out, false);
  pair.decoder = make(config, spec, dim_in, dim_out, true);
  return pair;
}

}  // namespace millrace
