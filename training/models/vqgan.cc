#include "vqgan_layers.h"

#include <millrace/pipeline/error.h>
#include <millrace/training/models/vqgan.h>

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {

namespace F = torch::nn::functional;

namespace {

torch::Tensor log_with_floor(const torch::Tensor& x) {
  return (x + 1e-10).log();
}

torch::Tensor gradient(const torch::Tensor& of, const torch::Tensor& by,
                       const torch::Tensor& incoming = {}) {
  return torch::autograd::grad(
      {of}, {by}, incoming.defined() ? std::vector{incoming} : std::vector<torch::Tensor>{},
      /*retain_graph=*/true)[0];
}

// d logits / d pictures, differentiable
torch::Tensor slope_by_autograd(const torch::Tensor& pictures, const torch::Tensor& logits) {
  return torch::autograd::grad({logits}, {pictures}, {torch::ones_like(logits)},
                               /*retain_graph=*/true, /*create_graph=*/true)[0];
}

void train_quantizer(GeneratorLoss& loss, const Quantized& quantized) {
  if (!quantized.loss.requires_grad()) return;
  loss.graph.roots.push_back(quantized.loss);
  loss.graph.gradients.push_back(torch::ones_like(quantized.loss));
}

}  // namespace

VqganImpl::VqganImpl(VqganConfig config) : config_(std::move(config)) {
  config_.check();
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
    discriminator_ = register_module("discr", std::make_shared<DiscriminatorImpl>(config_));
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
    refuse(c10::str("the VQGAN takes [batch, ", config_.channels, ", height, width], but got ",
                    pictures.sizes()));
  }
  for (std::int64_t side : {pictures.size(2), pictures.size(3)}) {
    if (side % config_.divisor() != 0) {
      refuse(c10::str("the sides of a picture must be multiples of ", config_.divisor(),
                      " (2 to the ", config_.layers, " layers), but one is ", side));
    }
  }
}

Quantized VqganImpl::encode(const torch::Tensor& pictures) {
  const torch::Tensor features = encoder_decoder_->encode(pictures);
  return lfq_ ? lfq_->forward(features) : vq_->forward(features);
}

torch::Tensor VqganImpl::decode(const torch::Tensor& features) {
  return encoder_decoder_->decode(features);
}

torch::Tensor VqganImpl::decode_indices(const torch::Tensor& indices) {
  return decode(lfq_ ? lfq_->decode(indices) : vq_->decode(indices));
}

torch::Tensor VqganImpl::reconstruct(const torch::Tensor& pictures) {
  check_pictures(pictures);
  return decode(encode(pictures).features);
}

torch::Tensor VqganImpl::reconstruction_loss(const torch::Tensor& fake,
                                             const torch::Tensor& real) const {
  return config_.l2_recon_loss ? F::mse_loss(fake, real) : F::l1_loss(fake, real);
}

torch::Tensor VqganImpl::perceptual_loss(const torch::Tensor& fake,
                                         const torch::Tensor& real) const {
  if (!perceptual_net_) return torch::zeros({}, fake.options());
  // The network knows three colours; grey is repeated.
  auto features = [&](const torch::Tensor& x) {
    return perceptual_net_(x.size(1) == 1 ? x.expand({-1, 3, -1, -1}) : x);
  };
  torch::Tensor wanted;
  {
    torch::NoGradGuard no_grad;
    wanted = features(real);
  }
  return F::mse_loss(wanted, features(fake));
}

torch::Tensor VqganImpl::adversarial_loss(const torch::Tensor& pictures) {
  const torch::Tensor logits = discriminator_->forward(pictures);
  return config_.use_hinge_loss ? -logits.mean() : -log_with_floor(logits.sigmoid()).mean();
}

GeneratorLoss VqganImpl::generator_loss(const torch::Tensor& pictures,
                                        const GeneratorOptions& options) {
  check_pictures(pictures);
  if (options.as_in_python && config_.use_vgg_and_gan && perceptual_net_) {
    return generator_loss_as_in_python(pictures, options);
  }
  GeneratorLoss loss;
  const Quantized quantized = encode(pictures);
  const torch::Tensor fake = decode(quantized.features);
  const torch::Tensor reconstruction = reconstruction_loss(fake, pictures);
  loss.pictures = fake.detach();
  loss.reconstruction = reconstruction.detach();
  loss.quantizer = quantized.loss.detach();
  loss.graph.roots = {reconstruction};
  loss.graph.gradients = {torch::ones_like(reconstruction)};
  if (!config_.use_vgg_and_gan) {
    // The package leaves the quantizer's loss out; then nothing keeps features near codes.
    loss.total = loss.reconstruction;
    if (options.as_in_python) return loss;
    loss.total = loss.total + loss.quantizer;
    train_quantizer(loss, quantized);
    return loss;
  }

  // From here on the losses see a leaf; what they say of it is handed on to the real graph.
  torch::Tensor leaf = loss.pictures.clone().requires_grad_();
  const torch::Tensor perceptual = perceptual_loss(leaf, pictures);
  const torch::Tensor adversarial = adversarial_loss(leaf);
  const torch::Tensor by_adversarial = torch::autograd::grad(
      {adversarial}, {leaf}, {}, /*retain_graph=*/options.discriminator_gradients)[0];
  const torch::Tensor last = encoder_decoder_->last_weight();
  torch::Tensor by_perceptual = torch::zeros_like(leaf), weighed;
  if (perceptual_net_) {
    by_perceptual = torch::autograd::grad({perceptual}, {leaf})[0];
    weighed = gradient(fake, last, by_perceptual);
  } else {
    weighed = gradient(reconstruction, last);
  }
  const torch::Tensor against = gradient(fake, last, by_adversarial);
  const torch::Tensor weight =
      (weighed.norm() / against.norm().clamp_min(1e-8)).clamp_max(1e4) * options.adversarial_weight;

  loss.perceptual = perceptual.detach();
  loss.adversarial = adversarial.detach();
  loss.adaptive_weight = weight;
  loss.total = loss.reconstruction + loss.perceptual + loss.quantizer + weight * loss.adversarial;
  train_quantizer(loss, quantized);
  loss.graph.roots.push_back(fake);
  loss.graph.gradients.push_back(by_perceptual + weight * by_adversarial);
  if (options.discriminator_gradients) {
    const std::vector<torch::Tensor> parameters = discriminator_->parameters();
    const std::vector<torch::Tensor> gradients =
        torch::autograd::grad({adversarial}, parameters, {weight});
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      loss.graph.discriminator.emplace_back(parameters[i], gradients[i]);
    }
  }
  return loss;
}

GeneratorLoss VqganImpl::generator_loss_as_in_python(const torch::Tensor& pictures,
                                                     const GeneratorOptions& options) {
  const Quantized quantized = encode(pictures);
  const torch::Tensor fake = decode(quantized.features);
  const torch::Tensor reconstruction = reconstruction_loss(fake, pictures);
  const torch::Tensor perceptual = perceptual_loss(fake, pictures);
  const torch::Tensor adversarial = adversarial_loss(fake);
  const torch::Tensor last = encoder_decoder_->last_weight();
  const torch::Tensor against = gradient(adversarial, last).norm();
  const torch::Tensor weighed = gradient(perceptual, last).norm();
  const torch::Tensor weight =
      (weighed / against.clamp(1e-8)).clamp_max_(1e4) * options.adversarial_weight;
  const torch::Tensor total = reconstruction + perceptual + quantized.loss + weight * adversarial;
  GeneratorLoss loss{.total = total.detach(),
                     .reconstruction = reconstruction.detach(),
                     .perceptual = perceptual.detach(),
                     .adversarial = adversarial.detach(),
                     .adaptive_weight = weight,
                     .quantizer = quantized.loss.detach(),
                     .pictures = fake.detach(),
                     .graph = {}};
  loss.graph.roots = {total};
  loss.graph.gradients = {torch::ones_like(total)};
  return loss;
}

void GeneratorLoss::backward(double scale) {
  if (scale != 1) {
    for (torch::Tensor& gradient : graph.gradients) gradient = gradient * scale;
  }
  torch::autograd::backward(graph.roots, graph.gradients);
  for (auto& [parameter, gradient] : graph.discriminator) {
    const torch::Tensor scaled = gradient * scale;
    torch::Tensor& there = parameter.mutable_grad();
    there = there.defined() ? there + scaled : scaled;
  }
  graph = {};
}

torch::Tensor VqganImpl::discriminator_loss(const torch::Tensor& pictures,
                                            const DiscriminatorOptions& options) {
  check_pictures(pictures);
  torch::Tensor fake;
  {
    torch::NoGradGuard no_grad;
    fake = decode(encode(pictures).features);
  }
  torch::Tensor real = pictures.detach(), real_logits, slope;
  const torch::Tensor fake_logits = discriminator_->forward(fake);
  if (!options.gradient_penalty) {
    real_logits = discriminator_->forward(real);
  } else if (options.as_in_python) {
    real = real.clone().requires_grad_();
    real_logits = discriminator_->forward(real);
  } else {
    auto both = discriminator_->slope(real);
    real_logits = both.logits;
    slope = both.gradient;
  }
  torch::Tensor loss =
      config_.use_hinge_loss
          ? (torch::relu(1 + fake_logits) + torch::relu(1 - real_logits)).mean()
          : (-log_with_floor(1 - fake_logits.sigmoid()) - log_with_floor(real_logits.sigmoid()))
                .mean();
  if (options.gradient_penalty) {
    if (!slope.defined()) slope = slope_by_autograd(real, real_logits);
    const torch::Tensor excess = slope.flatten(1).norm(2, 1) - 1;
    loss = loss + options.penalty_weight * excess.square().mean();
  }
  return loss;
}

std::vector<torch::Tensor> VqganImpl::generator_parameters() const {
  std::vector<torch::Tensor> parameters = encoder_decoder_->parameters();
  const auto& quantizer = lfq_ ? lfq_->parameters() : vq_->parameters();
  parameters.insert(parameters.end(), quantizer.begin(), quantizer.end());
  return parameters;
}

std::vector<torch::Tensor> VqganImpl::discriminator_parameters() const {
  return discriminator_ ? discriminator_->parameters() : std::vector<torch::Tensor>{};
}

}  // namespace millrace
