#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/tensor_views.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_stage.h>
#include <millrace/training/models/vqgan/vgg16.h>

#include <algorithm>
#include <chrono>

namespace millrace {

namespace {

enum PhaseNumber : std::size_t { generator_phase, discriminator_phase };

constexpr double gif_frames_per_second = 1 / 0.12;  // as in the Python trainer

// Minimum of init_dim for channels-last: a whole training step takes a tenth less time with 16
// channels, but a tenth more with 8.
constexpr std::int64_t wide_enough = 16;

}  // namespace

VideoTokenizerStage::VideoTokenizerStage(const VideoTokenizerConfig& config,
                                         const VideoTokenizerStageOptions& options)
    : options_(options),
      model_(config),
      average_(config),
      generator_(make_optimizer(model_->generator_parameters())) {
  if (config.conditional()) {
    throw Error(
        "conditional layers (cond_...) need a condition with every clip, which a folder does not "
        "have")
        .hint("Remove the cond_ layers")
        .kind(ErrorKind::usage);
  }
  model_->to(options.device);  // in place: the optimizer's parameters stay valid
  average_->to(options.device);
  model_->set_recompute(options.recompute);
  model_->set_draws(draws_);
  const bool channels_last = options.device.is_cpu() && config.init_dim >= wide_enough;
  model_->set_channels_last(channels_last);
  average_->set_channels_last(channels_last);
  if (config.has_gan()) {
    auto add = [&](std::vector<torch::Tensor> parameters) {
      discriminators_.push_back(std::make_unique<Optimizer>(make_optimizer(std::move(parameters))));
    };
    add(model_->discriminator_parameters());
    const std::size_t more = config.has_multiscale() ? config.multiscale_discrs.size() : 0;
    for (std::size_t i = 0; i < more; ++i) add(model_->multiscale_parameters(i));
  }
  if (options.vgg.empty() && config.has_perceptual()) {
    log(LogLevel::info,
        "training without a perceptual loss, because no VGG16 weights are given (--vgg vgg16.pt)");
  } else if (config.has_perceptual()) {
    Vgg16 vgg = Vgg16::from_file(options.vgg);
    vgg.to(options.device);
    model_->set_perceptual_net(vgg);
  }
  for (torch::Tensor& parameter : average_->parameters()) parameter.requires_grad_(false);
}

Optimizer VideoTokenizerStage::make_optimizer(std::vector<torch::Tensor> parameters) const {
  OptimizerOptions options = options_.optimizer;
  options.as_in_python = options_.compat;
  return Optimizer(std::move(parameters), options);
}

std::vector<Phase> VideoTokenizerStage::phases() {
  auto optimizer = [&](std::string name, Optimizer& one) {
    return PhaseOptimizer{
        .state = std::move(name), .optimizer = &one, .max_grad_norm = options_.max_grad_norm};
  };
  Phase generator{.loss = "total_loss", .optimizers = {optimizer("optimizer", generator_)}};
  generator.optimizers[0].warmup = "warmup";
  generator.optimizers[0].schedule = "scheduler";
  if (discriminators_.empty()) return {std::move(generator)};
  Phase others{.loss = "discr_loss",
               .optimizers = {optimizer("discr_optimizer", *discriminators_[0])},
               .first_step = options_.discr_start_after_step};
  others.optimizers[0].warmup = "discr_warmup";
  others.optimizers[0].schedule = "discr_scheduler";
  for (std::size_t i = 1; i < discriminators_.size(); ++i) {
    others.optimizers.push_back(
        optimizer("multiscale_discr_optimizer_" + std::to_string(i - 1), *discriminators_[i]));
  }
  return {std::move(generator), std::move(others)};
}

// Crops frames that are padding in every row. The model is causal in time, so the losses stay the
// same.
VideoTokenizerStage::Clips VideoTokenizerStage::clips(const Batch& batch) const {
  Clips clips{.video = model_->as_video(to_tensor(batch[options_.field])), .valid_frames = {}};
  if (options_.valid_field.empty()) return clips;
  const std::int64_t frames = clips.video.size(2), factor = model_->config().time_factor();
  const torch::Tensor valid = to_tensor(batch[options_.valid_field]).to(torch::kCPU);
  if (valid.min().item<std::int64_t>() >= frames) return clips;
  const std::int64_t longest = std::max<std::int64_t>(valid.max().item<std::int64_t>(), 1);
  const std::int64_t needed = (longest - 1 + factor - 1) / factor * factor + 1;
  if (needed < frames) clips.video = clips.video.narrow(2, 0, needed);
  clips.valid_frames = valid.clone();
  return clips;
}

Logs VideoTokenizerStage::backward(const Batch& batch, const MicroStep& micro) {
  const Clips now = clips(batch);
  if (!options_.compat) {
    std::uint64_t key = mix(options_.seed, static_cast<std::uint64_t>(micro.step));
    key = mix(key, static_cast<std::uint64_t>(micro.phase));
    draws_->reseed(mix(key, static_cast<std::uint64_t>(batch.indices()[0])));
  }
  return micro.phase == generator_phase ? generator_step(now, micro)
                                        : discriminator_step(now, micro);
}

void VideoTokenizerStage::timed(const std::function<void()>& backward) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  backward();
  backward_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
}

double VideoTokenizerStage::adversarial_weight() const {
  // Without a perceptual loss, a factor of 1 lets an untrained discriminator dominate and the model
  // does not learn.
  constexpr double beside_reconstruction = 0.1;
  const bool perceptual = !options_.vgg.empty() && model_->config().has_perceptual();
  return options_.adversarial_weight.value_or(
      perceptual || options_.compat ? 1.0 : beside_reconstruction);
}

Logs VideoTokenizerStage::generator_step(const Clips& clips, const MicroStep& micro) {
  const bool adversarial =
      !discriminators_.empty() && micro.step >= options_.discr_start_after_step;
  const VideoTokenizerConfig& config = model_->config();
  const double weight = adversarial_weight();
  VideoLossOptions options{
      .valid_frames = clips.valid_frames,
      .adversarial = adversarial,
      .weigh_against_reconstruction = true,
      .adversarial_loss_weight = config.adversarial_loss_weight * weight,
      .multiscale_adversarial_loss_weight = config.multiscale_adversarial_loss_weight * weight};
  // The Python trainer computes the adversarial loss and multiplies it by 0.
  if (options_.compat && !adversarial) {
    options.adversarial_loss_weight = options.multiscale_adversarial_loss_weight = 0;
  }
  VideoGeneratorLoss loss = model_->generator_loss(clips.video, options);
  timed([&] { loss.backward(micro.scale); });
  Logs logs{{"total_loss", loss.total.item<double>()},
            {"recon_loss", loss.reconstruction.item<double>()},
            {"perceptual_loss", loss.perceptual.item<double>()},
            {"adversarial_gen_loss", loss.adversarial.item<double>()},
            {"quantizer_loss", loss.quantizer.item<double>()}};
  if (!model_->config().use_fsq) {
    logs.emplace_back("per_sample_entropy", loss.per_sample_entropy.item<double>());
    logs.emplace_back("batch_entropy", loss.batch_entropy.item<double>());
    logs.emplace_back("commitment", loss.commitment.item<double>());
  }
  if (adversarial) logs.emplace_back("adaptive_weight", loss.adaptive_weight.item<double>());
  for (std::size_t i = 0; i < loss.multiscale.size(); ++i) {
    logs.emplace_back("multiscale_gen_loss_" + std::to_string(i),
                      loss.multiscale[i].item<double>());
  }
  return logs;
}

Logs VideoTokenizerStage::discriminator_step(const Clips& clips, const MicroStep& micro) {
  const bool penalty = micro.step % options_.apply_gradient_penalty_every == 0;
  const VideoDiscriminatorLoss loss = model_->discriminator_loss(
      clips.video, {.valid_frames = clips.valid_frames, .gradient_penalty = penalty});
  timed([&] { (loss.total * micro.scale).backward(); });
  Logs logs{{"discr_loss", loss.hinge.item<double>()}};
  if (penalty) logs.emplace_back("gradient_penalty", loss.gradient_penalty.item<double>());
  for (std::size_t i = 0; i < loss.multiscale.size(); ++i) {
    logs.emplace_back("multiscale_discr_loss_" + std::to_string(i),
                      loss.multiscale[i].item<double>());
  }
  return logs;
}

Logs VideoTokenizerStage::validate(const Batch& batch, bool average) {
  const Clips now = clips(batch);
  const torch::Tensor fake = (average ? average_ : model_)->reconstruct(now.video);
  const torch::Tensor by_clip = VideoTokenizerImpl::difference(fake, now.video, now.valid_frames);
  return {{"recon_loss", by_clip.mean().item<double>()}};
}

Samples VideoTokenizerStage::sample(const Batch& batch, std::int64_t step, bool average) {
  if (average != options_.sample_average) return {};
  const Clips now = clips(batch);
  const std::int64_t rows = std::min(options_.num_save_recons, now.video.size(0));
  torch::Tensor real = now.video.narrow(0, 0, rows);
  torch::Tensor fake = (average ? average_ : model_)->reconstruct(real);
  if (now.valid_frames.defined()) {
    const std::int64_t longest = std::clamp<std::int64_t>(
        now.valid_frames.narrow(0, 0, rows).max().item<std::int64_t>(), 1, real.size(2));
    real = real.narrow(2, 0, longest);
    fake = fake.narrow(2, 0, longest);
  }
  // [rows, channels, frames, height, 2 width] to [frames, rows height, 2 width, channels]
  const torch::Tensor pairs = torch::cat({real, fake.clamp(0, 1)}, 4);
  const torch::Tensor clip = pairs.permute({2, 0, 3, 4, 1}).flatten(1, 2);
  // Numbered as in the Python trainer. A sample between two validations (the last one) gets the
  // number of the next.
  const std::int64_t every = std::max<std::int64_t>(options_.validate_every_step, 1);
  const std::int64_t number = step % every == 0 ? (step + 1) / every : step / every + 1;
  return {.pictures = {{.name = "sampled." + std::to_string(number),
                        .pixels = to_array(clip.mul(255).round().to(torch::kUInt8)),
                        .frames_per_second = gif_frames_per_second}}};
}

}  // namespace millrace
