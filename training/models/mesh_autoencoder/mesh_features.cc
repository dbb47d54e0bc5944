#include "mesh_features.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <torch/nn/functional/conv.h>

namespace millrace {

namespace F = torch::nn::functional;

namespace {

torch::Tensor unit(const torch::Tensor& x) {
  return F::normalize(x, F::NormalizeFuncOptions().dim(-1));
}

torch::Tensor discretize(const torch::Tensor& t, double low, double high, std::int64_t bins) {
  const torch::Tensor at = (t - low) / (high - low) * bins - 0.5;
  return at.round().to(torch::kInt64).clamp(0, bins - 1);
}

// Gaussian weights of the neighbouring bins; the correct bin is in the middle.
torch::Tensor blur_weights(double sigma) {
  if (!(sigma > 0)) return torch::ones({1});
  auto width = static_cast<std::int64_t>(std::ceil(sigma * 5));
  width += (width + 1) % 2;
  const std::int64_t half = width / 2;
  const torch::Tensor distance = torch::arange(-half, half + 1, torch::kFloat32);
  const torch::Tensor weights = torch::exp(-distance.square() / (2 * sigma * sigma));
  return F::normalize(weights, F::NormalizeFuncOptions().dim(-1).p(1));
}

std::vector<float> blur(double sigma) {
  const torch::Tensor weights = blur_weights(sigma);
  return {weights.data_ptr<float>(), weights.data_ptr<float>() + weights.numel()};
}

std::int64_t chunk_of(const torch::Tensor& on) {
  return on.is_cuda() ? 16384 : 256;  // faces per chunk; few enough for a processor's cache
}

// Cross entropy of the logits of some faces with their blurred bins.
class BlurredTarget {
 public:
  BlurredTarget(const torch::Tensor& bins, std::int64_t count, const std::vector<float>& weights)
      : weights_(weights) {
    const auto half = static_cast<std::int64_t>(weights.size()) / 2;
    for (std::int64_t k = -half; k <= half; ++k) {
      const torch::Tensor shifted = (bins + k).unsqueeze(-1);
      const torch::Tensor inside = shifted.ge(0).logical_and_(shifted.lt(count));
      at_.push_back(shifted.clamp(0, count - 1));
      // Weight outside the first or last bin is dropped.
      bin_weights_.push_back(inside.to(torch::kFloat32) *
                             weights[static_cast<std::size_t>(k + half)]);
    }
  }
  torch::Tensor loss(const torch::Tensor& log_p) const {
    torch::Tensor sum = torch::zeros({}, log_p.options());
    for (std::size_t k = 0; k < at_.size(); ++k) {
      sum -= (log_p.gather(-1, at_[k]) * bin_weights_[k]).sum();
    }
    return sum;
  }
  // The gradient with respect to the logits. Overwrites `log_p` with it.
  torch::Tensor gradient(torch::Tensor& log_p) const {
    torch::Tensor mass = bin_weights_[0].clone();
    for (std::size_t k = 1; k < bin_weights_.size(); ++k) mass += bin_weights_[k];
    log_p.exp_().mul_(mass);
    for (std::size_t k = 0; k < at_.size(); ++k) log_p.scatter_add_(-1, at_[k], -bin_weights_[k]);
    return log_p;
  }

 private:
  std::vector<float> weights_;
  std::vector<torch::Tensor> at_, bin_weights_;
};

class CoordinateLoss : public torch::autograd::Function<CoordinateLoss> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& hidden, const torch::Tensor& weight,
                               const torch::Tensor& bias, const torch::Tensor& bins,
                               std::int64_t count, const std::vector<float>& blurred,
                               bool with_gradients) {
    torch::Tensor sum = torch::zeros({}, hidden.options());
    torch::Tensor to_hidden, to_weight, to_bias;
    if (with_gradients) {
      to_hidden = torch::empty_like(hidden);
      to_weight = torch::zeros_like(weight);
      to_bias = torch::zeros_like(bias);
    }
    const std::int64_t step = chunk_of(hidden);
    for (std::int64_t begin = 0; begin < hidden.size(0); begin += step) {
      const std::int64_t n = std::min(step, hidden.size(0) - begin);
      const torch::Tensor some = hidden.narrow(0, begin, n);
      const BlurredTarget target(bins.narrow(0, begin, n), count, blurred);
      torch::Tensor log_p =
          torch::linear(some, weight, bias).unflatten(1, {-1, count}).log_softmax(-1);
      sum += target.loss(log_p);
      if (!with_gradients) continue;
      const torch::Tensor gradient = target.gradient(log_p).flatten(1);
      torch::Tensor place = to_hidden.narrow(0, begin, n);
      at::mm_out(place, gradient, weight);
      to_weight.addmm_(gradient.t(), some);
      to_bias += gradient.sum(0);
    }
    if (with_gradients) context->save_for_backward({to_hidden, to_weight, to_bias});
    return sum;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    torch::autograd::variable_list all = context->get_saved_variables();
    for (torch::Tensor& one : all) one = one * gradients[0];
    all.resize(7);
    return all;
  }
};

}  // namespace

FaceFeatures face_features(const torch::Tensor& corners, const MeshAutoencoderConfig& config) {
  torch::NoGradGuard no_grad;
  constexpr double eps = 1e-5;
  const auto [low, high] = config.coor_continuous_range;
  // `before` is the preceding corner. Two faults of the package are reproduced: angles are between
  // positions as seen from the origin, and all areas are equal because the normals are already
  // normalized.
  const torch::Tensor before = corners.roll(1, 1);
  const torch::Tensor cosines = torch::einsum("...d,...d->...", {unit(corners), unit(before)});
  const torch::Tensor angles = cosines.clamp(-1 + eps, 1 - eps).arccos();
  const torch::Tensor edges = corners - before;
  const torch::Tensor normals = unit(torch::linalg_cross(edges.select(1, 0), edges.select(1, 1)));
  const torch::Tensor area = normals.norm(2, -1, true) * 0.5;
  return {.coordinates = discretize(corners, low, high, config.num_discrete_coors).flatten(1),
          .angles = discretize(angles, 0, std::numbers::pi, config.num_discrete_angle),
          .area = discretize(area, 0, (high - low) * (high - low), config.num_discrete_area),
          .normals = discretize(normals, low, high, config.num_discrete_normals)};
}

torch::Tensor undiscretize(const torch::Tensor& bins, const MeshAutoencoderConfig& config) {
  const auto [low, high] = config.coor_continuous_range;
  return (bins.to(torch::kFloat32) + 0.5) / config.num_discrete_coors * (high - low) + low;
}

torch::Tensor coordinate_loss(const torch::Tensor& hidden, const torch::Tensor& weight,
                              const torch::Tensor& bias, const torch::Tensor& bins,
                              const MeshAutoencoderConfig& config) {
  // In float32, because the package computes log-probabilities in float32.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return CoordinateLoss::apply(hidden.to(torch::kFloat32), weight, bias, bins,
                               config.num_discrete_coors, blur(config.bin_smooth_blur_sigma),
                               torch::GradMode::is_enabled());
}

torch::Tensor coordinate_loss_reference(const torch::Tensor& logits, const torch::Tensor& bins,
                                        const torch::Tensor& mask,
                                        const MeshAutoencoderConfig& config) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const torch::Tensor log_p =
      logits.to(torch::kFloat32).permute({0, 3, 1, 2}).flatten(2).log_softmax(1);
  torch::Tensor target = torch::zeros_like(log_p).scatter(1, bins.flatten(1).unsqueeze(1), 1);
  const torch::Tensor weights = blur_weights(config.bin_smooth_blur_sigma).to(target.device());
  if (weights.size(0) > 1) {
    const std::int64_t places = target.size(2);
    target = F::conv1d(target.transpose(1, 2), weights.expand({places, 1, -1}),
                       F::Conv1dFuncOptions().padding(weights.size(0) / 2).groups(places))
                 .transpose(1, 2);
  }
  const torch::Tensor each = (-target * log_p).sum(1);
  return each.index({mask.repeat_interleave(config.coordinates(), 1)}).mean();
}

torch::Tensor likeliest_bins(const torch::Tensor& hidden, const torch::Tensor& weight,
                             const torch::Tensor& bias, const MeshAutoencoderConfig& config) {
  torch::NoGradGuard no_grad;
  const std::int64_t step = chunk_of(hidden);
  torch::Tensor bins =
      torch::empty({hidden.size(0), config.coordinates()}, hidden.options().dtype(torch::kInt64));
  for (std::int64_t begin = 0; begin < hidden.size(0); begin += step) {
    const std::int64_t n = std::min(step, hidden.size(0) - begin);
    const torch::Tensor logits = torch::linear(hidden.narrow(0, begin, n), weight, bias);
    bins.narrow(0, begin, n).copy_(logits.unflatten(1, {-1, config.num_discrete_coors}).argmax(-1));
  }
  return bins;
}

}  // namespace millrace
