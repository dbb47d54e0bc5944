#include "packed_encoder.h"
#include "vqgan_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <c10/util/StringUtil.h>

namespace millrace {

VqganImpl::VqganImpl(VqganConfig config) : config_(std::move(config)) {
  config_.check();
  losses_ = {.l2_recon_loss = config_.l2_recon_loss,
             .use_hinge_loss = config_.use_hinge_loss,
             .use_vgg_and_gan = config_.use_vgg_and_gan};
  encoder_decoder_ = register_module("enc_dec", std::make_shared<EncoderDecoderImpl>(config_));
  const std::int64_t dim = config_.layer_dims().back();
  if (config_.lookup_free_quantization) {
    config_.lfq.dim = dim;
    config_.lfq.codebook_size = config_.codebook_size;
    lfq_ = register_module("quantizer", Lfq(config_.lfq));
  } else {
    config_.vq.dim = dim;
    config_.vq.codebook_size = config_.codebook_size;
    vq_ = register_module("quantizer", VectorQuantizer(config_.vq));
  }
  if (config_.use_vgg_and_gan) {
    std::vector<std::int64_t> dims{config_.dim};
    for (std::int64_t i = 0; i < config_.discr_layers; ++i) dims.push_back(config_.dim << i);
    make_discriminator(config_.channels, dims);
  }
}

void VqganImpl::set_draws(std::shared_ptr<Draws> draws) {
  if (lfq_) lfq_->set_draws(std::move(draws));
}

void VqganImpl::set_ranks(const CodebookRanks& ranks) {
  if (vq_) vq_->codebook()->ranks = ranks;
}

void VqganImpl::check_pictures(const torch::Tensor& pictures) const {
  auto refuse = [](const std::string& why) { throw Error(why).kind(ErrorKind::usage); };
  if (pictures.dim() != 4 || pictures.size(1) != config_.channels) {
    refuse(c10::str("the VQGAN expects pictures of shape [batch, ", config_.channels,
                    ", height, width], but got ", pictures.sizes()));
  }
  for (std::int64_t side : {pictures.size(2), pictures.size(3)}) {
    if (side % config_.divisor() != 0) {
      refuse(c10::str("height and width must be multiples of ", config_.divisor(), " (2 to the ",
                      config_.layers, " layers), but one is ", side));
    }
  }
}

Quantized VqganImpl::encode(const torch::Tensor& pictures) {
  const torch::Tensor features = encoder_decoder_->encode(pictures);
  return lfq_ ? lfq_->forward(features) : vq_->forward(features);
}

std::function<torch::Tensor(const torch::Tensor&)> VqganImpl::packed_encoder() const {
  return PackedEncoder(
      encoder_decoder_->encoders(), [lfq = lfq_, vq = vq_](const torch::Tensor& features) {
        return lfq ? Lfq(lfq)->choose(features) : VectorQuantizer(vq)->choose(features);
      });
}

torch::Tensor VqganImpl::decode(const torch::Tensor& features) {
  return encoder_decoder_->decode(features);
}

torch::Tensor VqganImpl::decode_indices(const torch::Tensor& indices) {
  return decode(lfq_ ? lfq_->decode(indices) : vq_->decode(indices));
}

torch::Tensor VqganImpl::last_weight() const {
  return encoder_decoder_->last_weight();
}

torch::Tensor VqganImpl::ratio(const torch::Tensor& norm, const torch::Tensor& other) const {
  return norm / other.clamp_min(1e-8);
}

}  // namespace millrace
