#include "code_entropy.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/lfq.h>

#include <bit>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace F = torch::nn::functional;

namespace {

constexpr double inverse_temperature = 100;

// The sum of -p log p over the last dimension, with the package's clamp of the logarithm. The order
// of the statements sets the order in which autograd sums the gradients of p.
torch::Tensor entropy(const torch::Tensor& p) {
  const torch::Tensor negative = -p;
  const torch::Tensor logarithm = p.clamp(1e-5).log();
  return (negative * logarithm).sum(-1);
}

}  // namespace

CosineLinearImpl::CosineLinearImpl(std::int64_t in, std::int64_t out, double scale)
    : scale_(scale) {
  weight_ = register_parameter("weight", torch::randn({in, out}));
}

torch::Tensor CosineLinearImpl::forward(const torch::Tensor& x) {
  const auto rows = F::NormalizeFuncOptions().dim(-1);
  const auto columns = F::NormalizeFuncOptions().dim(0);
  return torch::matmul(F::normalize(x, rows), F::normalize(weight_, columns)) * scale_;
}

LfqImpl::LfqImpl(LfqOptions options) : options_(options) {
  auto& o = options_;
  if (o.codebook_size == 0 && o.dim > 0 && o.dim < 31) o.codebook_size = std::int64_t{1} << o.dim;
  if (o.codebook_size < 2 || !std::has_single_bit(static_cast<std::uint64_t>(o.codebook_size))) {
    throw Error(c10::str("codebook_size of the lookup-free quantizer must be a power of 2, but is ",
                         o.codebook_size))
        .kind(ErrorKind::usage)
        .hint(c10::str("Take ", std::bit_ceil(static_cast<std::uint64_t>(o.codebook_size | 2))));
  }
  keep_codebooks_ = o.keep_num_codebooks_dim.value_or(o.num_codebooks > 1);
  if (o.num_codebooks < 1 || (o.num_codebooks > 1 && !keep_codebooks_) ||
      !(o.frac_per_sample_entropy > 0 && o.frac_per_sample_entropy <= 1) ||
      o.soft_clamp_input_value.value_or(o.codebook_scale) < o.codebook_scale) {
    throw Error(
        "lookup-free quantizer: num_codebooks must be at least 1 (above 1 needs "
        "keep_num_codebooks_dim), frac_per_sample_entropy above 0 and at most 1, and "
        "soft_clamp_input_value at least codebook_scale")
        .kind(ErrorKind::usage);
  }
  bits_ = std::countr_zero(static_cast<std::uint64_t>(o.codebook_size));
  const std::int64_t codes = bits_ * o.num_codebooks;
  if (o.dim == 0) o.dim = codes;
  if (o.dim != codes) {
    if (o.cosine_sim_project_in) {
      cosine_in_ = register_module(
          "project_in",
          CosineLinear(o.dim, codes, o.cosine_sim_project_in_scale.value_or(o.codebook_scale)));
    } else {
      linear_in_ = register_module(
          "project_in",
          torch::nn::Linear(torch::nn::LinearOptions(o.dim, codes).bias(o.projection_has_bias)));
    }
    linear_out_ = register_module(
        "project_out",
        torch::nn::Linear(torch::nn::LinearOptions(codes, o.dim).bias(o.projection_has_bias)));
  }
  mask_ = register_buffer("mask", torch::pow(2, torch::arange(bits_ - 1, -1, -1)));
}

torch::Tensor LfqImpl::project_in(const torch::Tensor& x) {
  torch::Tensor y = x;
  if (linear_in_) y = project(linear_in_, x);
  if (cosine_in_) y = cosine_in_->forward(x);
  if (!options_.soft_clamp_input_value) return y;
  const double limit = *options_.soft_clamp_input_value;
  return (y / limit).tanh() * limit;
}

bool LfqImpl::transposes(const torch::Tensor& features) const {
  return options_.channel_first.value_or(features.dim() >= 4);
}

torch::Tensor LfqImpl::vectors(const torch::Tensor& features) {
  torch::Tensor x = features.to(torch::kFloat32);
  if (transposes(features)) {
    x = x.movedim(1, -1);
    x = x.reshape({x.size(0), -1, x.size(-1)}).contiguous();
  }
  if (x.size(-1) != options_.dim) {
    throw Error(c10::str("the quantizer expects ", options_.dim, " channels, but got ", x.size(-1)))
        .kind(ErrorKind::usage);
  }
  x = project_in(x);
  return x.reshape({x.size(0), x.size(1), options_.num_codebooks, bits_});
}

torch::Tensor LfqImpl::as_features(const torch::Tensor& of_vectors,
                                   const torch::Tensor& features) const {
  torch::Tensor shaped = of_vectors;
  if (transposes(features)) {
    std::vector<std::int64_t> shape = features.sizes().vec();
    shape.erase(shape.begin() + 1);
    shape.push_back(options_.num_codebooks);
    shaped = shaped.reshape(shape);
  }
  return keep_codebooks_ ? shaped : shaped.squeeze(-1);
}

Quantized LfqImpl::forward(const torch::Tensor& features, const torch::Tensor& counted) {
  // Always in float32, even under autocast.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const torch::Tensor x = vectors(features);
  const torch::Tensor scale = torch::full_like(x, options_.codebook_scale);
  const torch::Tensor signs = torch::where(x > 0, scale, -scale);
  Quantized result;
  result.indices = as_features(((x > 0).to(torch::kInt64) * mask_).sum(-1), features);
  // Straight-through estimator: the sign, with the gradient of the input. Computed before the
  // losses, as in the package, so that autograd sums the gradients in the same order.
  torch::Tensor codes = is_training() ? x + (signs - x).detach() : signs;
  add_losses(x, signs, counted, result);
  codes = codes.flatten(2);
  if (linear_out_) codes = project(linear_out_, codes);
  if (transposes(features)) {
    std::vector<std::int64_t> shape = features.sizes().vec();
    shape.erase(shape.begin() + 1);
    shape.push_back(codes.size(-1));
    codes = codes.reshape(shape).movedim(-1, 1);
  }
  result.features = codes;
  return result;
}

ChosenCodes LfqImpl::choose(const torch::Tensor& features) {
  const torch::Tensor x = vectors(features);
  const torch::Tensor length = x.norm(2, -1).clamp_min(1e-12);
  return {.indices = as_features(((x > 0).to(torch::kInt64) * mask_).sum(-1), features),
          .margins = as_features(x.abs().amin(-1) / length, features)};
}

void LfqImpl::add_entropies(const torch::Tensor& input, const torch::Tensor& chosen,
                            Quantized& result) {
  if (options_.factored_entropies) {
    torch::Tensor vectors = input.flatten(0, 1);
    if (chosen.defined()) vectors = vectors.index({chosen});
    std::vector<torch::Tensor> per_sample, batch;  // one per codebook
    for (const torch::Tensor& bits : vectors.unbind(1)) {
      const CodeEntropies both = code_entropies(bits, options_.codebook_scale, inverse_temperature);
      per_sample.push_back(both.per_sample);
      batch.push_back(both.batch);
    }
    result.per_sample_entropy = torch::stack(per_sample).mean();
    result.batch_entropy = torch::stack(batch).mean();
    return;
  }
  if (!codebook_.defined() || codebook_.device() != input.device()) {
    torch::Tensor numbers = torch::arange(options_.codebook_size, mask_.options()).unsqueeze(-1);
    codebook_ = torch::where(numbers.bitwise_and(mask_) != 0, options_.codebook_scale,
                             -options_.codebook_scale)
                    .to(input.options());
  }
  // Softmax over negative squared distances, without the terms that are equal for all codes.
  torch::Tensor p =
      (torch::einsum("...id,jd->...ij", {input, codebook_}) * (2 * inverse_temperature))
          .softmax(-1)
          .flatten(0, 1);  // [vectors, codebooks, codes]
  if (chosen.defined()) p = p.index({chosen});
  result.per_sample_entropy = entropy(p).mean();
  result.batch_entropy = entropy(p.mean(0)).mean();
}

void LfqImpl::add_losses(const torch::Tensor& input, const torch::Tensor& signs,
                         const torch::Tensor& counted, Quantized& result) {
  result.loss = torch::zeros({}, input.options());
  if (!is_training()) return;
  torch::Tensor chosen = counted.defined() ? counted.flatten() : counted;
  if (options_.frac_per_sample_entropy < 1) {
    const std::int64_t vectors =
        counted.defined() ? counted.sum().item<std::int64_t>() : input.size(0) * input.size(1);
    const auto kept =
        static_cast<std::int64_t>(static_cast<double>(vectors) * options_.frac_per_sample_entropy);
    const torch::Tensor drawn = draws_->normal({vectors}).argsort().lt(kept).to(input.device());
    chosen = chosen.defined() ? chosen.masked_scatter(chosen, drawn) : drawn;
  }
  if (!torch::GradMode::is_enabled()) return;  // the loss could not be used
  add_entropies(input, chosen, result);
  result.loss = (result.per_sample_entropy - options_.diversity_gamma * result.batch_entropy) *
                options_.entropy_loss_weight;
  if (options_.commitment_loss_weight > 0) {
    const auto each = F::MSELossFuncOptions().reduction(torch::kNone);
    const torch::Tensor distance = options_.use_code_agnostic_commit_loss
                                       ? F::mse_loss(input.square(), signs.square(), each)
                                       : F::mse_loss(input, signs, each);
    result.commitment = (counted.defined() ? distance.index({counted}) : distance).mean();
    result.loss = result.loss + result.commitment * options_.commitment_loss_weight;
  }
}

torch::Tensor LfqImpl::decode(const torch::Tensor& indices) {
  torch::Tensor numbers = keep_codebooks_ ? indices : indices.unsqueeze(-1);
  torch::Tensor codes = torch::where(numbers.unsqueeze(-1).bitwise_and(mask_) != 0,
                                     options_.codebook_scale, -options_.codebook_scale)
                            .to(torch::kFloat32)
                            .flatten(-2);
  if (linear_out_) codes = project(linear_out_, codes);
  const bool image = indices.dim() >= (keep_codebooks_ ? 4 : 3);
  return options_.channel_first.value_or(image) ? codes.movedim(-1, 1) : codes;
}

}  // namespace millrace
