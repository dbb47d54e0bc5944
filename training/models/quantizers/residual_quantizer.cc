#include "residual_quantizer.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>

#include <bit>

namespace millrace {

namespace {

std::int64_t bits_of(std::int64_t codebook_size) {
  return std::bit_width(static_cast<std::uint64_t>(codebook_size)) - 1;
}

class ResidualLfq : public ResidualQuantizer {
 public:
  explicit ResidualLfq(const MeshAutoencoderConfig& config)
      : ResidualQuantizer(config, bits_of(config.codebook_size)) {
    const ResidualLfqConfig& given = config.rlfq_kwargs;
    LfqOptions options{.dim = bits_of(config.codebook_size),
                       .entropy_loss_weight = given.entropy_loss_weight,
                       .commitment_loss_weight = 1,
                       .diversity_gamma = given.diversity_gamma,
                       .frac_per_sample_entropy = given.frac_per_sample_entropy,
                       .use_code_agnostic_commit_loss = given.use_code_agnostic_commit_loss,
                       .soft_clamp_input_value = given.soft_clamp_input_value,
                       .channel_first = false,
                       .factored_entropies = true};
    std::vector<std::pair<std::string, ModulePointer>> children;
    for (std::int64_t i = 0; i < config.num_quantizers; ++i) {
      layers_.emplace_back(options);
      children.emplace_back(std::to_string(i), layers_.back().ptr());
      options.codebook_scale /= 2;
      if (options.soft_clamp_input_value) *options.soft_clamp_input_value /= 2;
    }
    register_module("layers", named(children));
  }

  void set_draws(std::shared_ptr<Draws> draws) override {
    for (Lfq& layer : layers_) layer->set_draws(draws);
    ResidualQuantizer::set_draws(std::move(draws));
  }
  void set_reference(bool reference) override {
    for (Lfq& layer : layers_) layer->set_factored_entropies(!reference);
  }

 protected:
  Quantized quantize(std::int64_t which, const torch::Tensor& x,
                     const torch::Tensor& counted) override {
    return layers_[static_cast<std::size_t>(which)]->forward(x, counted);
  }
  torch::Tensor codes(std::int64_t which, const torch::Tensor& indices) override {
    return layers_[static_cast<std::size_t>(which)]->decode(indices);
  }

 private:
  std::vector<Lfq> layers_;
};

class ResidualVq : public ResidualQuantizer {
 public:
  explicit ResidualVq(const MeshAutoencoderConfig& config)
      : ResidualQuantizer(config, dim_of(config)),
        stochastic_(config.rvq_stochastic_sample_codes),
        cosine_(config.rvq_kwargs.use_cosine_sim),
        compat_(config.compat),
        codebook_(VectorQuantizerOptions{
            .dim = dim_of(config),
            .codebook_size = config.codebook_size,
            .codebook_dim = dim_of(config),
            .decay = config.rvq_kwargs.decay,
            .eps = config.rvq_kwargs.eps,
            .kmeans_init = config.rvq_kwargs.kmeans_init,
            .kmeans_iters = static_cast<int>(config.rvq_kwargs.kmeans_iters),
            .use_cosine_sim = config.rvq_kwargs.use_cosine_sim,
            .threshold_ema_dead_code = config.rvq_kwargs.threshold_ema_dead_code}) {
    std::vector<std::pair<std::string, ModulePointer>> children;
    for (std::int64_t i = 0; i < config.num_quantizers; ++i) {  // all quantizers share one codebook
      children.emplace_back(std::to_string(i), named({{"_codebook", codebook_.ptr()}}));
    }
    register_module("layers", named(children));
  }

  void set_draws(std::shared_ptr<Draws> draws) override {
    codebook_->draws = draws;
    ResidualQuantizer::set_draws(std::move(draws));
  }
  Codebook codebook() override { return codebook_; }

 protected:
  Quantized quantize(std::int64_t /*which*/, const torch::Tensor& input,
                     const torch::Tensor& counted) override {
    const torch::Tensor x = cosine_
                                ? torch::nn::functional::normalize(
                                      input, torch::nn::functional::NormalizeFuncOptions().dim(-1))
                                : input;
    Quantized result;
    torch::Tensor nearest;
    {
      torch::NoGradGuard no_grad;
      const torch::Tensor flat = x.detach().flatten(0, 1), chosen = counted.flatten();
      const torch::Tensor some = flat.index({chosen});
      codebook_->start(some);
      const torch::Tensor indices =
          is_training() && stochastic_ ? codebook_->drawn(flat) : codebook_->nearest(flat);
      nearest = codebook_->codes().index_select(0, indices).reshape(x.sizes());
      // Dead codes are replaced by valid vectors only. The package may also use padding; `compat`
      // reproduces that.
      if (is_training()) {
        codebook_->follow(some, indices.index({chosen}), compat_ ? flat : some);
      }
      result.indices = indices.reshape({x.size(0), x.size(1)});
    }
    torch::Tensor codes = nearest;
    result.loss = torch::zeros({}, x.options());
    if (is_training()) {
      codes = x + (nearest - x).detach();
      result.commitment = torch::mse_loss(nearest, x, at::Reduction::None).index({counted}).mean();
      result.loss = result.commitment;
    }
    result.features = torch::where(counted.unsqueeze(-1), codes, input);
    return result;
  }
  torch::Tensor codes(std::int64_t /*which*/, const torch::Tensor& indices) override {
    return codebook_->codes().index_select(0, indices.flatten()).unflatten(0, indices.sizes());
  }

 private:
  static std::int64_t dim_of(const MeshAutoencoderConfig& config) {
    const std::int64_t given = config.rvq_kwargs.codebook_dim;
    return given == 0 ? config.dim_codebook : given;
  }

  bool stochastic_, cosine_, compat_;
  Codebook codebook_;
};

}  // namespace

ResidualQuantizer::ResidualQuantizer(const MeshAutoencoderConfig& config, std::int64_t codebook_dim)
    : quantizers_(config.num_quantizers), options_(config.rq_kwargs) {
  if (codebook_dim == config.dim_codebook) return;
  project_in_ = register_module("project_in", torch::nn::Linear(config.dim_codebook, codebook_dim));
  project_out_ =
      register_module("project_out", torch::nn::Linear(codebook_dim, config.dim_codebook));
}

// Quantizer dropout: in training, random trailing quantizers are skipped, so that the model learns
// to use fewer codes.
std::int64_t ResidualQuantizer::last_quantizer() {
  if (!is_training() || !options_.quantize_dropout || quantizers_ < 2) return quantizers_ - 1;
  const std::int64_t multiple = options_.quantize_dropout_multiple_of;
  const std::int64_t last = draws_->integer(options_.quantize_dropout_cutoff_index, quantizers_);
  return (last + multiple) / multiple * multiple - 1;
}

ResidualCodes ResidualQuantizer::forward(const torch::Tensor& input, const torch::Tensor& counted) {
  torch::Tensor residual = project_in_ ? project(project_in_, input) : input;
  const std::int64_t last = last_quantizer();
  // Always in float32, even under autocast.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  residual = residual.to(torch::kFloat32);
  torch::Tensor sum;
  std::vector<torch::Tensor> indices, losses;
  for (std::int64_t i = 0; i < quantizers_; ++i) {
    if (i > last) {
      indices.push_back(torch::full({input.size(0), input.size(1)}, -1, indices[0].options()));
      losses.push_back(torch::zeros({}, residual.options()));
      continue;
    }
    const Quantized quantized = quantize(i, residual, counted);
    residual = residual - quantized.features.detach();
    sum = sum.defined() ? sum + quantized.features : quantized.features;
    indices.push_back(quantized.indices);
    losses.push_back(quantized.loss);
  }
  if (project_out_) sum = project(project_out_, sum);
  return {.features = sum, .indices = torch::stack(indices, -1), .losses = torch::stack(losses)};
}

torch::Tensor ResidualQuantizer::decode(const torch::Tensor& indices) {
  torch::Tensor sum;
  const std::int64_t given = std::min(indices.size(-1), quantizers_);
  for (std::int64_t i = 0; i < given; ++i) {
    const torch::Tensor one = indices.select(-1, i), absent = one == -1;
    const torch::Tensor features =
        codes(i, one.masked_fill(absent, 0)).masked_fill(absent.unsqueeze(-1), 0);
    sum = sum.defined() ? sum + features : features;
  }
  return project_out_ ? project(project_out_, sum) : sum;
}

std::shared_ptr<ResidualQuantizer> make_residual_quantizer(const MeshAutoencoderConfig& config) {
  if (config.use_residual_lfq) return std::make_shared<ResidualLfq>(config);
  return std::make_shared<ResidualVq>(config);
}

}  // namespace millrace
