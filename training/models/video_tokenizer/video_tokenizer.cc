#include "video_discriminator.h"
#include "video_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/ops/recompute.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>

#include <algorithm>
#include <iterator>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

LfqOptions lfq_options(const VideoTokenizerConfig& c, std::int64_t dim) {
  return {.dim = dim,
          .codebook_size = c.codebook_size,
          .entropy_loss_weight = c.lfq_entropy_loss_weight,
          .commitment_loss_weight = c.lfq_commitment_loss_weight,
          .diversity_gamma = c.lfq_diversity_gamma,
          .num_codebooks = c.num_codebooks};
}

nn::Conv2d same_conv(std::int64_t in, std::int64_t out, const std::array<std::int64_t, 3>& kernel) {
  const torch::ExpandingArray<2> padding({kernel[1] / 2, kernel[2] / 2});
  return nn::Conv2d(nn::Conv2dOptions(in, out, {kernel[1], kernel[2]}).padding(padding));
}

// Prepends `count` zero frames.
torch::Tensor pad_front(const torch::Tensor& video, std::int64_t count) {
  return torch::pad(video, {0, 0, 0, 0, count, 0});
}

}  // namespace

// Layers are constructed in the order of the Python package, so the same seed gives the same
// initial weights. They are registered in the order of its state_dict.
VideoTokenizerImpl::VideoTokenizerImpl(VideoTokenizerConfig config) : config_(std::move(config)) {
  config_.check();
  const auto& c = config_;
  conv_in_ = register_module(
      "conv_in",
      std::make_shared<CausalConv3d>(c.channels, c.init_dim, c.input_conv_kernel_size, c.pad_mode));
  if (c.separate_first_frame_encoding) {
    conv_in_first_ = register_module("conv_in_first_frame",
                                     same_conv(c.channels, c.init_dim, c.input_conv_kernel_size));
    conv_out_first_ = register_module("conv_out_first_frame",
                                      same_conv(c.init_dim, c.channels, c.output_conv_kernel_size));
  }
  conv_out_ =
      std::make_shared<CausalConv3d>(c.init_dim, c.channels, c.output_conv_kernel_size, c.pad_mode);
  const std::vector<std::int64_t> dims = c.layer_dims();
  std::int64_t dim = c.init_dim;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    VideoLayerPair pair = make_video_layers(c, c.layers[i], dim, dims[i]);
    encoder_.push_back(std::move(pair.encoder));
    decoder_.insert(decoder_.begin(), std::move(pair.decoder));
    dim = dims[i];
  }
  // The package constructs a final norm but never calls it, because it zips two lists of different
  // lengths. The norm is kept, because every checkpoint contains its weights.
  std::vector<std::pair<std::string, ModulePointer>> encoders, decoders;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    encoders.emplace_back(std::to_string(i), encoder_[i]);
    decoders.emplace_back(std::to_string(i), decoder_[i]);
  }
  const nn::LayerNorm unused(nn::LayerNormOptions({dim}));
  encoders.emplace_back(std::to_string(dims.size()), named({{"1", unused.ptr()}}));
  register_module("encoder_layers", named(encoders));
  register_module("decoder_layers", named(decoders));
  register_module("conv_out", conv_out_);
  if (c.conditional()) {
    encoder_cond_ = nn::Linear(c.dim_cond, c.expanded_cond());
    decoder_cond_ = nn::Linear(c.dim_cond, c.expanded_cond());
    register_module("encoder_cond_in", named({{"0", encoder_cond_.ptr()}}));
    register_module("decoder_cond_in", named({{"0", decoder_cond_.ptr()}}));
  }
  if (c.use_fsq) {
    fsq_ = register_module(
        "quantizers",
        Fsq(FsqOptions{.levels = c.fsq_levels, .dim = dim, .num_codebooks = c.num_codebooks}));
  } else {
    lfq_ = register_module("quantizers", Lfq(lfq_options(c, dim)));
  }
  discriminator_ =
      register_module("discr", std::make_shared<VideoDiscriminator>(c.discriminator()));
  std::vector<std::pair<std::string, ModulePointer>> others;
  for (const VideoDiscriminatorConfig& one : c.multiscale()) {
    multiscale_.push_back(std::make_shared<VideoDiscriminator>(one));
    others.emplace_back(std::to_string(others.size()), multiscale_.back());
  }
  register_module("multiscale_discrs", named(others));
}

void VideoTokenizerImpl::set_channels_last(bool channels_last) {
  channels_last_ = channels_last && !config_.compat;
  discriminator_->set_channels_last(channels_last_);
  for (const auto& one : multiscale_) one->set_channels_last(channels_last_);
}

torch::Tensor VideoTokenizerImpl::laid_out(const torch::Tensor& video) const {
  return channels_last_ ? channels_last(video) : video;
}

torch::Tensor VideoTokenizerImpl::as_video(const torch::Tensor& pictures,
                                           bool contains_first_frame) const {
  if (pictures.dim() == 4) return as_video(pictures.unsqueeze(2), true);
  const std::int64_t side = config_.image_size;
  if (pictures.dim() != 5 || pictures.size(1) != config_.channels || pictures.size(3) != side ||
      pictures.size(4) != side) {
    throw_usage_error(c10::str("the video tokenizer expects videos of shape [batch, ",
                               config_.channels, ", frames, ", side, ", ", side, "], but got ",
                               pictures.sizes()));
  }
  const std::int64_t frames = pictures.size(2);
  if (frames < 1 || (frames - (contains_first_frame ? 1 : 0)) % config_.time_factor() != 0) {
    throw_usage_error(
        c10::str("the number of frames", contains_first_frame ? " without the first" : "",
                 " must be a multiple of ", config_.time_factor(), ", but there are ", frames));
  }
  return pictures;
}

torch::Tensor VideoTokenizerImpl::condition(nn::Linear& stem, const torch::Tensor& cond,
                                            std::int64_t batch) {
  if (!stem) return {};
  if (!cond.defined() || cond.dim() != 2 || cond.size(0) != batch ||
      cond.size(1) != config_.dim_cond) {
    throw_usage_error(
        c10::str("this video tokenizer has conditional layers and needs a condition of shape [",
                 batch, ", ", config_.dim_cond, "]"));
  }
  return torch::silu(project(stem, cond));
}

torch::Tensor VideoTokenizerImpl::encode(const torch::Tensor& video, const VideoOptions& options) {
  const std::int64_t padding = config_.time_factor() - 1;
  const torch::Tensor cond = condition(encoder_cond_, options.cond, video.size(0));
  torch::Tensor x;
  if (options.contains_first_frame && conv_in_first_) {
    x = conv_in_first_->forward(video.select(2, 0)).unsqueeze(2);
    const std::int64_t rest = video.size(2) - 1;
    if (rest > 0) x = torch::cat({x, conv_in_->forward(video.narrow(2, 1, rest))}, 2);
    x = pad_front(x, padding);
  } else {
    const torch::Tensor whole = laid_out(video);
    x = conv_in_->forward(options.contains_first_frame ? pad_front(whole, padding) : whole);
  }
  return run(encoder_, x, cond);
}

torch::Tensor VideoTokenizerImpl::run(const std::vector<std::shared_ptr<VideoLayer>>& layers,
                                      torch::Tensor x, const torch::Tensor& cond) const {
  x = laid_out(x);
  for (const auto& layer : layers) {
    x = recompute_
            ? recomputed([layer](const auto& in, const auto& by) { return layer->forward(in, by); },
                         x, cond)
            : layer->forward(x, cond);
  }
  return x;
}

// The first code of a pixel covers the first frame; each following code covers time_factor()
// frames. A code counts in the loss if at least one of its frames is valid.
Quantized VideoTokenizerImpl::quantize(const torch::Tensor& features,
                                       const torch::Tensor& valid_frames) {
  if (fsq_) return fsq_->forward(features);
  if (!valid_frames.defined()) return lfq_->forward(features);
  const torch::Tensor valid = valid_frames.to(features.device()).clamp_min(1).unsqueeze(1);
  const std::int64_t factor = config_.time_factor();
  const torch::Tensor codes = (valid - 1 + factor - 1).floor_divide(factor) + 1;
  const torch::Tensor counted = torch::arange(features.size(2), valid.options()) < codes;
  const std::int64_t places = features.size(3) * features.size(4);
  return lfq_->forward(features, counted.repeat_interleave(places, 1));
}

torch::Tensor VideoTokenizerImpl::decode(const torch::Tensor& features,
                                         const VideoOptions& options) {
  const std::int64_t padding = config_.time_factor() - 1;
  const torch::Tensor cond = condition(decoder_cond_, options.cond, features.size(0));
  torch::Tensor x = features;
  x = run(decoder_, x, cond);
  if (!options.contains_first_frame) return conv_out_->forward(x);
  if (!conv_out_first_) {
    x = conv_out_->forward(x);
    return x.narrow(2, padding, x.size(2) - padding);
  }
  const torch::Tensor first = conv_out_first_->forward(x.select(2, padding)).unsqueeze(2);
  const std::int64_t rest = x.size(2) - padding - 1;
  if (rest == 0) return first;
  return torch::cat({first, conv_out_->forward(x.narrow(2, padding + 1, rest))}, 2);
}

torch::Tensor VideoTokenizerImpl::decode_from_code_indices(const torch::Tensor& codes,
                                                           const VideoOptions& options) {
  const std::int64_t books = config_.num_codebooks;
  torch::Tensor shaped = codes.to(torch::kInt64);
  if (shaped.dim() == (books > 1 ? 3 : 2)) {
    const std::int64_t side = config_.image_size / config_.space_factor();
    if (shaped.size(1) % (side * side) != 0) {
      throw_usage_error(c10::str("the number of codes per video must be a multiple of ",
                                 side * side, ", but is ", shaped.size(1)));
    }
    shaped = shaped.unflatten(1, {-1, side, side});
  }
  return decode(fsq_ ? fsq_->decode(shaped) : lfq_->decode(shaped), options);
}

torch::Tensor VideoTokenizerImpl::tokenize(const torch::Tensor& video,
                                           const VideoOptions& options) {
  torch::NoGradGuard no_grad;
  const bool training = is_training();
  eval();
  const torch::Tensor whole = as_video(video, options.contains_first_frame);
  const torch::Tensor codes = quantize(encode(whole, options)).indices;
  train(training);
  return codes;
}

torch::Tensor VideoTokenizerImpl::reconstruct(const torch::Tensor& video,
                                              const VideoOptions& options) {
  const torch::Tensor whole = as_video(video, options.contains_first_frame);
  return decode(quantize(encode(whole, options)).features, options);
}

std::vector<torch::Tensor> VideoTokenizerImpl::generator_parameters() const {
  const auto children = named_children();
  std::vector<torch::Tensor> parameters;
  for (const char* name :
       {"conv_in", "conv_in_first_frame", "conv_out_first_frame", "conv_out", "encoder_layers",
        "decoder_layers", "encoder_cond_in", "decoder_cond_in", "quantizers"}) {
    const ModulePointer* child = children.find(name);
    if (child == nullptr) continue;
    std::ranges::copy((*child)->parameters(), std::back_inserter(parameters));
  }
  return parameters;
}

std::vector<torch::Tensor> VideoTokenizerImpl::discriminator_parameters() const {
  return discriminator_->parameters();
}

std::vector<torch::Tensor> VideoTokenizerImpl::multiscale_parameters(std::size_t which) const {
  return multiscale_.at(which)->parameters();
}

}  // namespace millrace
