// The losses of the video tokenizer: reconstruction, perceptual and adversarial losses.
#include "video_discriminator.h"
#include "video_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>

#include <limits>

namespace millrace {

namespace F = torch::nn::functional;

namespace {

// Selects one frame per video: [batch, channels, height, width].
torch::Tensor pick(const torch::Tensor& video, const torch::Tensor& frames) {
  const torch::Tensor rows = torch::arange(video.size(0), frames.options());
  return video.transpose(1, 2).index({rows, frames});
}

// Weighted mean of values per frame, [batch * frames].
torch::Tensor mean_of(const torch::Tensor& by_frame, const torch::Tensor& weights = {}) {
  return weights.defined() ? (by_frame * weights.flatten()).sum() : by_frame.mean();
}

torch::Tensor hinge(const torch::Tensor& fake, const torch::Tensor& real,
                    const torch::Tensor& weights = {}) {
  return mean_of(torch::relu(1 + fake) + torch::relu(1 - real), weights);
}

// Weight of each frame, [batch, frames], with sum 1; undefined if all frames are valid.
torch::Tensor frame_weights(const torch::Tensor& valid_frames, const torch::Tensor& video) {
  if (!valid_frames.defined()) return {};
  const torch::Tensor own = valid_frames.to(video.device()).clamp(1, video.size(2)).unsqueeze(1);
  const torch::Tensor counts = torch::arange(video.size(2), own.options()) < own;
  return counts.to(video.dtype()) / (own * video.size(0)).to(video.dtype());
}

// mean((|d logits / d pictures| - 1)^2); differentiable.
torch::Tensor slope_penalty(const torch::Tensor& pictures, const torch::Tensor& logits) {
  const torch::Tensor slope =
      torch::autograd::grad({logits}, {pictures}, {torch::ones_like(logits)},
                            /*retain_graph=*/true, /*create_graph=*/true)[0];
  return (slope.flatten(1).norm(2, 1) - 1).square().mean();
}

torch::Tensor detached(const torch::Tensor& x, const torch::Tensor& otherwise) {
  return x.defined() ? x.detach() : otherwise;
}

// RAII guard: `parameters` require no gradients during its lifetime.
class Constants {
 public:
  explicit Constants(std::vector<torch::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (torch::Tensor& parameter : parameters_) parameter.requires_grad_(false);
  }
  ~Constants() {
    for (torch::Tensor& parameter : parameters_) parameter.requires_grad_(true);
  }
  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

 private:
  std::vector<torch::Tensor> parameters_;
};

}  // namespace

// The losses of single frames see a detached leaf. Their gradients are accumulated in `by_fake` for
// the whole video and passed to the reconstruction's graph at the end.
struct VideoTokenizerImpl::Parts {
  torch::Tensor real, fake;
  torch::Tensor weights{};  // weights of the frames
  torch::Tensor frames{};   // indices of the frames drawn last; `leaf` holds these frames of `fake`
  torch::Tensor leaf{};
  torch::Tensor by_fake{};  // d total / d fake
  // |d perceptual / d last weight|; undefined: adaptive weights are 1.
  torch::Tensor balance_norm{};

  void draw(const torch::Tensor& drawn) {
    frames = drawn;
    leaf = pick(fake.detach(), frames).requires_grad_();
  }
  // Scatters the gradient of the drawn frames into a gradient of the whole reconstruction.
  torch::Tensor spread(const torch::Tensor& by_frames) const {
    // Frame by frame in memory, as in the package: the memory layout decides how sums round.
    torch::Tensor whole = torch::zeros(fake.transpose(1, 2).sizes(), fake.options());
    const torch::Tensor rows = torch::arange(fake.size(0), frames.options());
    whole.index_put_({rows, frames}, by_frames);
    return whole.transpose(1, 2);
  }
  void add(const torch::Tensor& gradient) {
    by_fake = by_fake.defined() ? by_fake + gradient : gradient;
  }
  // |d loss / d weights|, given the gradient of the loss with respect to the reconstruction.
  torch::Tensor norm(const torch::Tensor& gradient,
                     const std::vector<torch::Tensor>& weights) const {
    torch::Tensor squares = torch::zeros({}, fake.options());
    for (const torch::Tensor& by_weight :
         torch::autograd::grad({fake}, weights, {gradient}, /*retain_graph=*/true,
                               /*create_graph=*/false, /*allow_unused=*/true)) {
      if (weights.size() == 1 && by_weight.defined()) return by_weight.norm();
      if (by_weight.defined()) squares = squares + by_weight.square().sum();
    }
    return squares.sqrt();
  }
};

torch::Tensor VideoTokenizerImpl::draw_frames(const torch::Tensor& video,
                                              const torch::Tensor& weights) {
  torch::Tensor drawn = draws_->normal({video.size(0), video.size(2)});
  if (weights.defined()) {
    drawn = drawn.masked_fill((weights == 0).to(drawn.device()),
                              -std::numeric_limits<double>::infinity());
  }
  return std::get<1>(drawn.topk(1, -1)).squeeze(-1).to(video.device());
}

// The package uses only the last convolution, even if the first frame has its own. A discriminator
// that sees only first frames then has no gradient there, and its adaptive weight becomes the
// maximum of 1000.
std::vector<torch::Tensor> VideoTokenizerImpl::last_weights() const {
  std::vector<torch::Tensor> weights{conv_out_->weight()};
  if (conv_out_first_) weights.push_back(conv_out_first_->weight);
  return weights;
}

torch::Tensor VideoTokenizerImpl::perceptual_loss(const torch::Tensor& fake,
                                                  const torch::Tensor& real) const {
  // The network expects three channels: a grey channel is repeated, an alpha channel is ignored.
  auto features = [&](const torch::Tensor& x) {
    if (x.size(1) == 1) return perceptual_net_(x.expand({-1, 3, -1, -1}));
    return perceptual_net_(x.narrow(1, 0, 3));
  };
  torch::Tensor target;
  {
    torch::NoGradGuard no_grad;
    target = features(real);
  }
  return F::mse_loss(features(fake), target);
}

void VideoTokenizerImpl::add_perceptual(Parts& parts, VideoGeneratorLoss& loss,
                                        const VideoLossOptions& options) {
  loss.perceptual = torch::zeros({}, parts.fake.options());
  if (!perceptual_net_ || !config_.has_perceptual()) return;
  parts.draw(draw_frames(parts.fake, parts.weights));
  const torch::Tensor perceptual = perceptual_loss(parts.leaf, pick(parts.real, parts.frames));
  const torch::Tensor gradient = parts.spread(torch::autograd::grad({perceptual}, {parts.leaf})[0]);
  if (is_training() && options.adversarial && (config_.has_gan() || config_.has_multiscale())) {
    parts.balance_norm = parts.norm(gradient, last_weights());
  }
  loss.perceptual = perceptual.detach();
  loss.total = loss.total + loss.perceptual * config_.perceptual_loss_weight;
  parts.add(gradient * config_.perceptual_loss_weight);
}

void VideoTokenizerImpl::add_adversarial(Parts& parts, VideoGeneratorLoss& loss,
                                         const VideoLossOptions& options) {
  loss.adversarial = torch::zeros({}, parts.fake.options());
  loss.adaptive_weight = torch::zeros({}, parts.fake.options());
  if (!config_.has_gan() || !options.adversarial) return;
  parts.draw(draw_frames(parts.fake, parts.weights));
  const torch::Tensor adversarial = -discriminator_->forward(parts.leaf).mean();
  const torch::Tensor gradient = parts.spread(torch::autograd::grad(
      {adversarial}, {parts.leaf}, {}, /*retain_graph=*/options.discriminator_gradients)[0]);
  torch::Tensor weight = torch::ones({}, parts.fake.options());
  if (parts.balance_norm.defined()) {
    const torch::Tensor own = parts.norm(gradient, last_weights());
    const torch::Tensor ratio = (parts.balance_norm / own.clamp_min(1e-3)).clamp_max(1e3);
    weight = torch::where(ratio.isnan(), weight, ratio);
  }
  const double configured =
      options.adversarial_loss_weight.value_or(config_.adversarial_loss_weight);
  loss.adversarial = adversarial.detach();
  loss.adaptive_weight = weight;
  loss.total = loss.total + loss.adversarial * weight * configured;
  parts.add(gradient * (weight * configured));
  if (!options.discriminator_gradients) return;
  const std::vector<torch::Tensor> own = discriminator_->parameters();
  const std::vector<torch::Tensor> found =
      torch::autograd::grad({adversarial}, own, {weight * configured});
  for (std::size_t i = 0; i < own.size(); ++i) {
    loss.graph.discriminator.emplace_back(own[i], found[i]);
  }
}

void VideoTokenizerImpl::add_multiscale(Parts& parts, VideoGeneratorLoss& loss,
                                        const VideoLossOptions& options) {
  if (!config_.has_multiscale() || !options.adversarial) return;
  const double configured = options.multiscale_adversarial_loss_weight.value_or(
      config_.multiscale_adversarial_loss_weight);
  for (const auto& discriminator : multiscale_) {
    const torch::Tensor video = parts.fake.detach().requires_grad_();
    const torch::Tensor adversarial = -mean_of(discriminator->forward_video(video), parts.weights);
    const torch::Tensor gradient = torch::autograd::grad({adversarial}, {video})[0];
    torch::Tensor weight = torch::ones({}, parts.fake.options());
    if (parts.balance_norm.defined()) {
      const torch::Tensor own = parts.norm(gradient, last_weights());
      weight = (parts.balance_norm / own.clamp_min(1e-5)).clamp_max(1e3);
    }
    loss.multiscale.push_back(adversarial.detach());
    loss.multiscale_weights.push_back(weight);
    loss.total = loss.total + loss.multiscale.back() * weight * configured;
    parts.add(gradient * (weight * configured));
  }
}

torch::Tensor VideoTokenizerImpl::difference(const torch::Tensor& fake, const torch::Tensor& real,
                                             const torch::Tensor& valid_frames) {
  const torch::Tensor by_frame = (fake - real).square().mean({1, 3, 4});  // [batch, frames]
  const torch::Tensor weights = frame_weights(valid_frames, real);
  return weights.defined() ? (by_frame * weights).sum(1) * real.size(0) : by_frame.mean(1);
}

namespace {

// |d loss / d weight|
torch::Tensor gradient_norm(const torch::Tensor& loss, const torch::Tensor& weight) {
  return torch::autograd::grad({loss}, {weight}, {}, /*retain_graph=*/true)[0].norm();
}

// The terms that every generator loss has, for the log.
void set_terms(VideoGeneratorLoss& loss, const torch::Tensor& fake,
               const torch::Tensor& reconstruction, const Quantized& quantized) {
  loss.pictures = fake.detach();
  loss.reconstruction = reconstruction.detach();
  loss.quantizer = quantized.loss.detach();
  const torch::Tensor zero = torch::zeros({}, loss.quantizer.options());
  loss.per_sample_entropy = detached(quantized.per_sample_entropy, zero);
  loss.batch_entropy = detached(quantized.batch_entropy, zero);
  loss.commitment = detached(quantized.commitment, zero);
}

}  // namespace

VideoGeneratorLoss VideoTokenizerImpl::generator_loss(const torch::Tensor& video,
                                                      const VideoLossOptions& options) {
  if (config_.compat) return generator_loss_as_in_python(video, options);
  VideoGeneratorLoss loss;
  Parts parts{.real = laid_out(as_video(video, options.video.contains_first_frame)), .fake = {}};
  parts.weights = frame_weights(options.valid_frames, parts.real);
  const Quantized quantized = quantize(encode(parts.real, options.video), options.valid_frames);
  parts.fake = decode(quantized.features, options.video);
  const torch::Tensor reconstruction =
      parts.weights.defined() ? difference(parts.fake, parts.real, options.valid_frames).mean()
                              : F::mse_loss(parts.fake, parts.real);
  set_terms(loss, parts.fake, reconstruction, quantized);
  loss.graph.roots = {reconstruction};
  loss.graph.gradients = {torch::ones_like(reconstruction)};
  loss.total = loss.reconstruction + loss.quantizer * config_.quantizer_aux_loss_weight;
  if (quantized.loss.requires_grad()) {
    loss.graph.roots.push_back(quantized.loss);
    loss.graph.gradients.push_back(
        torch::full_like(quantized.loss, config_.quantizer_aux_loss_weight));
  }
  add_perceptual(parts, loss, options);
  if (options.weigh_against_reconstruction && options.adversarial && is_training() &&
      !parts.balance_norm.defined()) {
    parts.balance_norm = parts.norm(
        torch::autograd::grad({reconstruction}, {parts.fake}, {}, /*retain_graph=*/true)[0],
        last_weights());
  }
  add_adversarial(parts, loss, options);
  add_multiscale(parts, loss, options);
  if (parts.by_fake.defined()) {
    loss.graph.roots.push_back(parts.fake);
    loss.graph.gradients.push_back(parts.by_fake);
  }
  return loss;
}

VideoGeneratorLoss VideoTokenizerImpl::generator_loss_as_in_python(
    const torch::Tensor& video, const VideoLossOptions& options) {
  std::optional<Constants> constants;
  if (!options.discriminator_gradients) constants.emplace(discriminator_parameters());
  const torch::Tensor real = as_video(video, options.video.contains_first_frame);
  const Quantized quantized = quantize(encode(real, options.video));
  const torch::Tensor fake = decode(quantized.features, options.video);
  const torch::Tensor reconstruction = F::mse_loss(real, fake);
  const torch::Tensor zero = torch::zeros({}, fake.options()),
                      one = torch::ones({}, fake.options());
  torch::Tensor perceptual = zero, adversarial = zero, adaptive = zero, frames, drawn, against;
  auto norm = [&](const torch::Tensor& loss) { return gradient_norm(loss, conv_out_->weight()); };
  if (perceptual_net_ && config_.has_perceptual()) {
    frames = draw_frames(fake);
    perceptual = perceptual_loss(pick(fake, frames), pick(real, frames));
    if (is_training() && (config_.has_gan() || config_.has_multiscale()))
      against = norm(perceptual);
  }
  if (config_.has_gan()) {
    frames = draw_frames(fake);
    drawn = pick(fake, frames);
    adversarial = -discriminator_->forward(drawn).mean();
    adaptive = one;
    if (against.defined()) {
      adaptive = (against / norm(adversarial).clamp_min(1e-3)).clamp_max_(1e3);
      if (adaptive.isnan().item<bool>()) adaptive = one;
    }
  }
  VideoGeneratorLoss loss;
  torch::Tensor multiscale = zero;
  for (std::size_t i = 0; config_.has_multiscale() && i < multiscale_.size(); ++i) {
    // The package's fault: it averages the drawn frames instead of the discriminator's scores.
    if (!drawn.defined()) drawn = pick(fake, frames.defined() ? frames : draw_frames(fake));
    const torch::Tensor adversarial_one = -drawn.mean();
    torch::Tensor weight = one;
    if (against.defined())
      weight = (against / norm(adversarial_one).clamp_min(1e-5)).clamp_max_(1e3);
    loss.multiscale.push_back(adversarial_one.detach());
    loss.multiscale_weights.push_back(weight);
    multiscale = multiscale + adversarial_one * weight;
  }
  torch::Tensor total =
      reconstruction + quantized.loss * config_.quantizer_aux_loss_weight +
      perceptual * config_.perceptual_loss_weight +
      adversarial * adaptive *
          options.adversarial_loss_weight.value_or(config_.adversarial_loss_weight);
  if (!loss.multiscale.empty()) {
    total = total + multiscale * options.multiscale_adversarial_loss_weight.value_or(
                                     config_.multiscale_adversarial_loss_weight);
  }
  loss.total = total.detach();
  loss.perceptual = perceptual.detach();
  loss.adversarial = adversarial.detach();
  loss.adaptive_weight = adaptive;
  set_terms(loss, fake, reconstruction, quantized);
  loss.graph.roots = {total};
  loss.graph.gradients = {torch::ones_like(total)};
  return loss;
}

VideoDiscriminatorLoss VideoTokenizerImpl::discriminator_loss(const torch::Tensor& video,
                                                              const VideoLossOptions& options) {
  if (!config_.has_gan()) {
    throw Error(
        "this video tokenizer has no discriminator loss, because use_gan is false or "
        "adversarial_loss_weight is 0")
        .kind(ErrorKind::usage);
  }
  const torch::Tensor whole = as_video(video, options.video.contains_first_frame).detach();
  torch::Tensor fake_video;
  {
    torch::NoGradGuard no_grad;
    fake_video = reconstruct(whole, options.video);
  }
  const torch::Tensor weights = frame_weights(options.valid_frames, whole);
  const torch::Tensor frames = draw_frames(whole, weights);
  torch::Tensor real = pick(whole, frames);
  if (options.gradient_penalty) real.requires_grad_();
  const torch::Tensor real_logits = discriminator_->forward(real);
  const torch::Tensor fake_logits = discriminator_->forward(pick(fake_video, frames));
  VideoDiscriminatorLoss loss;
  loss.hinge = hinge(fake_logits, real_logits);
  loss.total = loss.hinge;
  loss.gradient_penalty = torch::zeros({}, whole.options());
  if (options.gradient_penalty) {
    loss.gradient_penalty = slope_penalty(real, real_logits);
    loss.total = loss.total + loss.gradient_penalty * config_.grad_penalty_loss_weight;
  }
  if (config_.has_multiscale()) {
    torch::Tensor sum = torch::zeros({}, whole.options());
    for (const auto& discriminator : multiscale_) {
      const torch::Tensor of_real = discriminator->forward_video(whole);
      loss.multiscale.push_back(hinge(discriminator->forward_video(fake_video), of_real, weights));
      sum = sum + loss.multiscale.back();
    }
    loss.total = loss.total + sum * config_.multiscale_adversarial_loss_weight;
  }
  return loss;
}

}  // namespace millrace
