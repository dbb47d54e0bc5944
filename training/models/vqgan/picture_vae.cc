#include "vqgan_layers.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/vqgan/picture_vae.h>

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

// d logits / d pictures; the result is differentiable again.
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

void PictureVaeImpl::make_discriminator(std::int64_t channels,
                                        const std::vector<std::int64_t>& dims) {
  discriminator_ = register_module("discr", std::make_shared<DiscriminatorImpl>(channels, dims));
}

torch::Tensor PictureVaeImpl::reconstruct(const torch::Tensor& pictures) {
  check_pictures(pictures);
  return decode(encode(pictures).features);
}

torch::Tensor PictureVaeImpl::reconstruction_loss(const torch::Tensor& fake,
                                                  const torch::Tensor& real) const {
  return losses_.l2_recon_loss ? F::mse_loss(fake, real) : F::l1_loss(fake, real);
}

torch::Tensor PictureVaeImpl::perceptual_loss(const torch::Tensor& fake,
                                              const torch::Tensor& real) const {
  if (!perceptual_net_) return torch::zeros({}, fake.options());
  // The network expects three channels; a grey channel is repeated.
  auto features = [&](const torch::Tensor& x) {
    return perceptual_net_(x.size(1) == 1 ? x.expand({-1, 3, -1, -1}) : x);
  };
  torch::Tensor target;
  {
    torch::NoGradGuard no_grad;
    target = features(real);
  }
  return F::mse_loss(target, features(fake));
}

torch::Tensor PictureVaeImpl::adversarial_loss(const torch::Tensor& pictures) {
  const torch::Tensor logits = discriminator_->forward(pictures);
  return losses_.use_hinge_loss ? -logits.mean() : -log_with_floor(logits.sigmoid()).mean();
}

namespace {

void add_discriminator(GeneratorLoss& loss, const torch::Tensor& adversarial,
                       const torch::Tensor& weight, const std::vector<torch::Tensor>& parameters) {
  const std::vector<torch::Tensor> gradients =
      torch::autograd::grad({adversarial}, parameters, {weight});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    loss.graph.discriminator.emplace_back(parameters[i], gradients[i]);
  }
}

}  // namespace

GeneratorLoss PictureVaeImpl::generator_loss(const torch::Tensor& pictures,
                                             const GeneratorOptions& options) {
  check_pictures(pictures);
  if (options.as_in_python && losses_.use_vgg_and_gan && perceptual_net_) {
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
  if (!losses_.use_vgg_and_gan) {
    // The Python package omits the quantizer's loss here, so nothing keeps features near their
    // codes.
    loss.total = loss.reconstruction;
    if (options.as_in_python) return loss;
    loss.total = loss.total + loss.quantizer;
    train_quantizer(loss, quantized);
    return loss;
  }

  // The losses below see a detached leaf. Their gradients are passed on to the reconstruction's
  // graph in GeneratorLoss::backward().
  torch::Tensor leaf = loss.pictures.clone().requires_grad_();
  const torch::Tensor perceptual = perceptual_loss(leaf, pictures);
  const torch::Tensor adversarial = adversarial_loss(leaf);
  const torch::Tensor by_adversarial = torch::autograd::grad(
      {adversarial}, {leaf}, {}, /*retain_graph=*/options.discriminator_gradients)[0];
  const torch::Tensor last = last_weight();
  torch::Tensor by_perceptual = torch::zeros_like(leaf), weighed;
  if (perceptual_net_) {
    by_perceptual = torch::autograd::grad({perceptual}, {leaf})[0];
    weighed = gradient(fake, last, by_perceptual);
  } else {
    weighed = gradient(reconstruction, last);
  }
  const torch::Tensor against = gradient(fake, last, by_adversarial);
  const torch::Tensor weight =
      ratio(weighed.norm(), against.norm()).clamp_max(1e4) * options.adversarial_weight;

  loss.perceptual = perceptual.detach();
  loss.adversarial = adversarial.detach();
  loss.adaptive_weight = weight;
  loss.total = loss.reconstruction + loss.perceptual + loss.quantizer + weight * loss.adversarial;
  train_quantizer(loss, quantized);
  loss.graph.roots.push_back(fake);
  loss.graph.gradients.push_back(by_perceptual + weight * by_adversarial);
  if (options.discriminator_gradients) {
    add_discriminator(loss, adversarial, weight, discriminator_->parameters());
  }
  return loss;
}

GeneratorLoss PictureVaeImpl::generator_loss_as_in_python(const torch::Tensor& pictures,
                                                          const GeneratorOptions& options) {
  const Quantized quantized = encode(pictures);
  const torch::Tensor fake = decode(quantized.features);
  const torch::Tensor reconstruction = reconstruction_loss(fake, pictures);
  const torch::Tensor perceptual = perceptual_loss(fake, pictures);
  const torch::Tensor adversarial = adversarial_loss(fake);
  const torch::Tensor last = last_weight();
  const torch::Tensor against = gradient(adversarial, last).norm();
  const torch::Tensor weighed = gradient(perceptual, last).norm();
  const torch::Tensor weight = ratio(weighed, against).clamp_max_(1e4) * options.adversarial_weight;
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
    torch::Tensor& accumulated = parameter.mutable_grad();
    accumulated = accumulated.defined() ? accumulated + scaled : scaled;
  }
  graph = {};
}

torch::Tensor PictureVaeImpl::discriminator_loss(const torch::Tensor& pictures,
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
      losses_.use_hinge_loss
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

std::vector<torch::Tensor> PictureVaeImpl::generator_parameters() const {
  std::vector<torch::Tensor> parameters;
  for (const auto& child : named_children()) {
    if (child.value() == discriminator_) continue;
    for (torch::Tensor& parameter : child.value()->parameters()) parameters.push_back(parameter);
  }
  return parameters;
}

std::vector<torch::Tensor> PictureVaeImpl::discriminator_parameters() const {
  return discriminator_ ? discriminator_->parameters() : std::vector<torch::Tensor>{};
}

}  // namespace millrace
