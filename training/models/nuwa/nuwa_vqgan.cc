#include "nuwa_vqgan_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/eval_mode.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>
#include <millrace/training/models/vqgan/packed_encoder.h>
#include <millrace/training/models/vqgan/vqgan_layers.h>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

nn::Upsample twice_as_large() {
  return nn::Upsample(nn::UpsampleOptions()
                          .scale_factor(std::vector<double>{2, 2})
                          .mode(torch::kBilinear)
                          .align_corners(false));
}

}  // namespace

// Layers are constructed in the order of the Python package: the same seed gives the same initial
// weights.
NuwaVqganImpl::NuwaVqganImpl(NuwaVqganConfig config) : config_(std::move(config)) {
  config_.check();
  losses_ = {.l2_recon_loss = config_.l2_recon_loss,
             .use_hinge_loss = config_.use_hinge_loss,
             .use_vgg_and_gan = config_.use_vgg_and_gan};
  const std::vector<std::int64_t> dims = config_.layer_dims(), blocks = config_.blocks_per_layer();
  const std::vector<bool> attends = config_.attention_per_layer();
  std::vector<nn::AnyModule> encoders, decoders;  // decoders: from the last layer to the first
  std::int64_t in = config_.dim;
  for (std::size_t layer = 0; layer < dims.size(); ++layer) {
    const std::int64_t out = dims[layer];
    auto attention = [&] {
      return nn::AnyModule(
          VqganAttention(out, config_.attn_heads, config_.attn_dim_head, config_.attn_dropout));
    };
    encoders.emplace_back(ConvBlock(nn::Sequential(conv(in, out, 4, 1, 2), leaky())));
    decoders.emplace_back(
        ConvBlock(nn::Sequential(twice_as_large(), conv(out, in, 3, 1), leaky())));
    if (attends[layer]) decoders.push_back(attention());
    for (std::int64_t i = 0; i < blocks[layer]; ++i) {
      encoders.emplace_back(encoder_block(out, config_.resnet_groups));
      decoders.emplace_back(decoder_block(out, config_.resnet_groups));
    }
    if (attends[layer]) encoders.push_back(attention());
    in = out;
  }
  const std::int64_t kernel = config_.first_conv_kernel_size;
  encoders_->push_back(conv(config_.channels, config_.dim, kernel, kernel / 2));
  for (nn::AnyModule& module : encoders) encoders_->push_back(std::move(module));
  for (std::size_t i = decoders.size(); i > 0; --i)
    decoders_->push_back(std::move(decoders[i - 1]));
  last_ = conv(config_.dim, config_.channels, 1);
  decoders_->push_back(last_);
  register_module("encoders", encoders_);
  register_module("decoders", decoders_);
  config_.vq.dim = in;
  vq_ = register_module("vq", VectorQuantizer(config_.vq));
  if (!config_.use_vgg_and_gan) return;
  std::vector<std::int64_t> of_discriminator{config_.dim};
  of_discriminator.insert(of_discriminator.end(), dims.begin(), dims.end());
  make_discriminator(config_.channels, of_discriminator);
}

void NuwaVqganImpl::check_pictures(const torch::Tensor& pictures) const {
  const std::int64_t side = config_.image_size;
  if (pictures.dim() == 4 && pictures.size(1) == config_.channels && pictures.size(2) == side &&
      pictures.size(3) == side) {
    return;
  }
  throw Error(c10::str("NUWA's VAE expects pictures of shape [batch, ", config_.channels, ", ",
                       side, ", ", side, "], but got ", pictures.sizes()))
      .kind(ErrorKind::usage);
}

Quantized NuwaVqganImpl::encode(const torch::Tensor& pictures) {
  return vq_->forward(encoders_->forward(pictures));
}

std::function<torch::Tensor(const torch::Tensor&)> NuwaVqganImpl::packed_encoder() const {
  return PackedEncoder(encoders_, [vq = vq_](const torch::Tensor& features) {
    return VectorQuantizer(vq)->choose(features);
  });
}

torch::Tensor NuwaVqganImpl::decode(const torch::Tensor& features) {
  return decoders_->forward(features);
}

torch::Tensor NuwaVqganImpl::get_video_indices(const torch::Tensor& video) {
  const torch::NoGradGuard no_grad;
  const EvalMode eval(*this);
  const torch::Tensor frames = video.flatten(0, 1);
  check_pictures(frames);
  return encode(frames).indices.unflatten(0, {video.size(0), video.size(1)});
}

torch::Tensor NuwaVqganImpl::codebook_indices_to_video(const torch::Tensor& indices,
                                                       std::int64_t at_once) {
  const torch::NoGradGuard no_grad;
  const EvalMode eval(*this);
  const std::int64_t side = config_.fmap_size(), batch = indices.size(0);
  const torch::Tensor frames = indices.reshape({-1, side, side});
  std::vector<torch::Tensor> decoded;
  for (const torch::Tensor& some : frames.split(at_once))
    decoded.push_back(decode(vq_->decode(some)));
  return torch::cat(decoded).unflatten(0, {batch, -1});
}

}  // namespace millrace
