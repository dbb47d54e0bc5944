#include <millrace/decoders/image/image_write.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/vqgan/vgg16.h>
#include <millrace/training/models/vqgan/vqgan_stage.h>

namespace millrace {

namespace {

enum PhaseNumber : std::size_t { generator_phase, discriminator_phase };

}  // namespace

VqganStage::VqganStage(const VqganConfig& config, const VqganStageOptions& options)
    : VqganStage(std::make_shared<VqganImpl>(config), std::make_shared<VqganImpl>(config),
                 options) {
  if (options.compat) options_.apply_grad_penalty_every = 1;
}

VqganStage::VqganStage(const NuwaVqganConfig& config, const VqganStageOptions& options)
    : VqganStage(std::make_shared<NuwaVqganImpl>(config), std::make_shared<NuwaVqganImpl>(config),
                 options) {
  if (options.compat) options_.apply_grad_penalty_every = 0;
}

VqganStage::VqganStage(std::shared_ptr<PictureVaeImpl> model,
                       std::shared_ptr<PictureVaeImpl> average, const VqganStageOptions& options)
    : options_(options),
      model_(std::move(model)),
      average_(std::move(average)),
      generator_(model_->generator_parameters(), optimizer_options()) {
  model_->to(options.device);  // in place: the optimizer's parameters stay valid
  average_->to(options.device);
  if (model_->has_discriminator()) {
    discriminator_.emplace(model_->discriminator_parameters(), optimizer_options());
    if (options.vgg.empty()) {
      log(LogLevel::info,
          "training without a perceptual loss, because no VGG16 weights are given (--vgg "
          "vgg16.pt)");
    } else {
      Vgg16 vgg = Vgg16::from_file(options.vgg);
      vgg.to(options.device);
      model_->set_perceptual_net(vgg);
      average_->set_perceptual_net(vgg);
    }
  }
  for (torch::Tensor& parameter : average_->parameters()) parameter.requires_grad_(false);
}

void VqganStage::join(RankGroup& ranks) {
  // The averaged model's codebook is copied from the model, never updated from features.
  model_->set_ranks({.rank = ranks.rank(),
                     .world = ranks.world(),
                     .sum = [&ranks](torch::Tensor& tensor) { ranks.sum(tensor); }});
}

OptimizerOptions VqganStage::optimizer_options() const {
  OptimizerOptions options = options_.optimizer;
  options.as_in_python = options_.compat;
  return options;
}

double VqganStage::adversarial_weight(std::int64_t step) const {
  // Without a perceptual loss, a factor of 1 lets an untrained discriminator dominate and the model
  // learns nothing.
  constexpr double beside_reconstruction = 0.1;
  if (step < options_.discr_start_step) return 0;
  return options_.adversarial_weight.value_or(options_.vgg.empty() ? beside_reconstruction : 1.0);
}

std::vector<Phase> VqganStage::phases() {
  std::vector<Phase> phases{
      {.loss = "loss",
       .optimizers = {
           {.state = "optim", .optimizer = &generator_, .max_grad_norm = options_.max_grad_norm}}}};
  if (discriminator_) {
    phases.push_back({.loss = "discr_loss",
                      .optimizers = {{.state = "discr_optim",
                                      .optimizer = &*discriminator_,
                                      .max_grad_norm = options_.discr_max_grad_norm}}});
  }
  return phases;
}

torch::Tensor VqganStage::pictures(const Batch& batch) const {
  const torch::Tensor found = to_tensor(batch[options_.field]);
  return found.dim() == 5 ? found.transpose(1, 2).flatten(0, 1) : found;
}

Logs VqganStage::backward(const Batch& batch, const MicroStep& micro) {
  if (micro.phase == discriminator_phase) {
    const std::int64_t every = options_.apply_grad_penalty_every;
    const bool penalty = every > 0 && micro.step % every == 0;
    const torch::Tensor loss = model_->discriminator_loss(
        pictures(batch), {.gradient_penalty = penalty, .as_in_python = options_.compat});
    (loss * micro.scale).backward();
    return {{"discr_loss", loss.item<double>()}};
  }
  GeneratorLoss loss = model_->generator_loss(
      pictures(batch),
      {.adversarial_weight = adversarial_weight(micro.step), .as_in_python = options_.compat});
  loss.backward(micro.scale);
  Logs logs{{"loss", loss.total.item<double>()},
            {"recon_loss", loss.reconstruction.item<double>()},
            {"quantizer_loss", loss.quantizer.item<double>()}};
  if (loss.adversarial.defined()) {
    logs.emplace_back("gen_loss", loss.adversarial.item<double>());
    logs.emplace_back("adaptive_weight", loss.adaptive_weight.item<double>());
    if (!options_.vgg.empty()) logs.emplace_back("perceptual_loss", loss.perceptual.item<double>());
  }
  return logs;
}

Logs VqganStage::validate(const Batch& batch, bool average) {
  PictureVaeImpl* model = (average ? average_ : model_).get();
  const torch::Tensor real = pictures(batch);
  const torch::Tensor fake = model->reconstruct(real);
  const double reconstruction = model->reconstruction_loss(fake, real).item<double>();
  if (options_.vgg.empty() || !model->has_discriminator()) return {{"loss", reconstruction}};
  const double perceptual = model->perceptual_loss(fake, real).item<double>();
  return {{"loss", reconstruction + perceptual},
          {"recon_loss", reconstruction},
          {"perceptual_loss", perceptual}};
}

Samples VqganStage::sample(const Batch& batch, std::int64_t step, bool average) {
  const torch::Tensor real = pictures(batch);
  const torch::Tensor fake = (average ? average_ : model_)->reconstruct(real);
  const torch::Tensor pairs = torch::stack({real, fake}, 1).flatten(0, 1).clamp(0, 1);
  return {.pictures = {{.name = std::to_string(step) + (average ? ".ema" : ""),
                        .pixels = make_grid(to_array(pairs.to(torch::kFloat32)), {.columns = 2})}}};
}

std::vector<std::pair<std::string, Value>> VqganStage::weights(std::int64_t step,
                                                               const Value& ema) {
  const std::string name = "vae." + std::to_string(step);
  std::vector<std::pair<std::string, Value>> files{
      {name + ".pt", to_value(state_tensors(*model_))}};
  if (!ema.is_none()) files.emplace_back(name + ".ema.pt", ema);
  return files;
}

}  // namespace millrace
