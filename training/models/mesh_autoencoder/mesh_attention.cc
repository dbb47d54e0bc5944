#include "mesh_attention.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/ops/taylor_series.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <cmath>
#include <limits>

namespace millrace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

nn::Linear linear(std::int64_t in, std::int64_t out) {
  return nn::Linear(nn::LinearOptions(in, out).bias(false));
}

torch::Tensor unit(const torch::Tensor& x) {
  return F::normalize(x, F::NormalizeFuncOptions().dim(-1));
}

// RMS norm with a learned factor; the parameter name depends on the package.
class ScaledNorm : public nn::Module {
 public:
  ScaledNorm(const std::string& name, std::int64_t dim)
      : scale_(std::sqrt(static_cast<double>(dim))) {
    factor_ = register_parameter(name, torch::ones({dim}));
  }
  // Two orders of multiplication, because the packages differ.
  torch::Tensor forward(const torch::Tensor& x) const { return unit(x) * scale_ * factor_; }
  torch::Tensor factor_first(const torch::Tensor& x) const { return factor_ * unit(x) * scale_; }

 private:
  double scale_;
  torch::Tensor factor_;
};

}  // namespace

// Linear attention: exp(qk) is replaced by its second-order Taylor series, so keys and values can
// be summed before they meet the queries.
class FaceAttentionBlock::Linear : public nn::Module {
 public:
  Linear(std::int64_t dim, const LinearAttentionConfig& config)
      : config_(config),
        norm_(register_module("norm", std::make_shared<ScaledNorm>("gamma", dim))),
        to_q_(linear(dim, config.dim_head * config.heads)),
        to_kv_(linear(dim, config.dim_head * 2 * (config.one_headed_kv ? 1 : config.heads))) {
    register_module("to_q", named({{"0", to_q_.ptr()}}));
    register_module("to_kv", named({{"0", to_kv_.ptr()}}));
    if (config.gate_value_heads) {
      to_gates_ = linear(dim, config.heads);
      register_module("to_v_gates", named({{"0", to_gates_.ptr()}}));
    }
    if (config.combine_heads) {
      to_out_ = linear(config.dim_head * config.heads, dim);
      register_module("to_out", named({{"0", to_out_.ptr()}}));
    }
  }

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& mask) {
    torch::Tensor x = input;
    // Token shift: the second half of the channels comes from the face before.
    if (config_.shift_tokens) {
      const auto halves = x.chunk(2, -1);
      x = torch::cat({halves[0], torch::pad(halves[1], {0, 0, 1, -1})}, -1);
    }
    const torch::Tensor normed = norm_->factor_first(x);
    const double scale = 1 / std::sqrt(static_cast<double>(config_.dim_head));
    const torch::Tensor q = taylor_series(
        to_q_->forward(normed).unflatten(-1, {config_.heads, -1}).transpose(1, 2) * scale);
    const auto kv = to_kv_->forward(normed)
                        .unflatten(-1, {2, -1, config_.dim_head})
                        .permute({2, 0, 3, 1, 4})
                        .unbind(0);
    const torch::Tensor absent = mask.logical_not().unsqueeze(1).unsqueeze(-1);
    torch::Tensor out =
        attend(q, taylor_series(kv[0]).masked_fill(absent, 0), kv[1].masked_fill(absent, 0));
    if (to_gates_) out = out * to_gates_->forward(x).sigmoid().transpose(1, 2).unsqueeze(-1);
    out = out.transpose(1, 2).flatten(2);
    if (!to_out_) return out;
    return torch::dropout(to_out_->forward(out), config_.dropout, is_training());
  }

 private:
  // All [batch, heads, faces, dim]. In the package's order of operations, because the gradients of
  // queries and keys nearly cancel.
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k,
                       const torch::Tensor& v) const {
    if (config_.one_headed_kv) {  // all query heads share one key and value head
      const torch::Tensor keys = k.squeeze(1),
                          products = torch::einsum("bnd,bne->bde", {keys, v.squeeze(1)});
      const torch::Tensor sums = torch::einsum("bhnd,bmd->bhn", {q, keys}).clamp_min(1e-5);
      return torch::einsum("bhnd,bde,bhn->bhne", {q, products, sums.reciprocal()});
    }
    const torch::Tensor products = torch::einsum("bhnd,bhne->bhde", {k, v});
    const torch::Tensor sums = torch::einsum("bhnd,bhmd->bhn", {q, k}).clamp_min(1e-5);
    return torch::einsum("bhnd,bhde,bhn->bhne", {q, products, sums.reciprocal()});
  }

  LinearAttentionConfig config_;
  std::shared_ptr<ScaledNorm> norm_;
  nn::Linear to_q_, to_kv_, to_gates_{nullptr}, to_out_{nullptr};
};

namespace {

// Concatenates each window with its neighbours: [batch, windows, size, ...] to [batch, windows,
// keys, ...].
torch::Tensor look_around(const torch::Tensor& x, const LocalAttentionConfig& config,
                          const torch::Scalar& fill) {
  const std::int64_t windows = x.size(1);
  std::vector<std::int64_t> padding(static_cast<std::size_t>(2 * (x.dim() - 2)), 0);
  padding.push_back(config.look_backward);
  padding.push_back(config.look_forward);
  const torch::Tensor padded = torch::constant_pad_nd(x, padding, fill);
  std::vector<torch::Tensor> shifted;
  for (std::int64_t i = 0; i <= config.look_backward + config.look_forward; ++i) {
    shifted.push_back(padded.narrow(1, i, windows));
  }
  return torch::cat(shifted, 2);
}

torch::Tensor rotate_half(const torch::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return torch::cat({-halves[1], halves[0]}, -1);
}

// Rotary embeddings by position among the keys of a window. As in the package, queries get the
// positions of the last of these windows, so a query is one window away from its own key. Trained
// weights depend on this.
class Rotary : public nn::Module {
 public:
  Rotary(const LocalAttentionConfig& config, std::int64_t window) : use_xpos_(config.use_xpos) {
    const auto dim = static_cast<double>(config.dim_head);
    const torch::Tensor even = torch::arange(0, config.dim_head, 2).to(torch::kFloat32);
    frequencies_ = register_buffer("inv_freq", 1 / torch::pow(10000, even / dim));
    scale_ = (even + 0.4 * dim) / (1.4 * dim);
    scale_base_ = config.xpos_scale_base.value_or(static_cast<double>(window / 2));
  }
  void rotate(torch::Tensor& q, torch::Tensor& k) const {
    const std::int64_t keys = k.size(-2), queries = q.size(-2);
    const torch::Tensor places = torch::arange(keys, frequencies_.options());
    torch::Tensor angles = places.unsqueeze(1) * frequencies_;
    angles = torch::cat({angles, angles}, -1);
    torch::Tensor cosine = angles.cos(), sine = angles.sin();
    const torch::Tensor q_cosine = cosine.narrow(0, keys - queries, queries);
    const torch::Tensor q_sine = sine.narrow(0, keys - queries, queries);
    if (!use_xpos_) {
      q = q * q_cosine + rotate_half(q) * q_sine;
      k = k * cosine + rotate_half(k) * sine;
      return;
    }
    const torch::Tensor power = (places - keys / 2) / scale_base_;
    torch::Tensor scale = torch::pow(scale_.to(places.device()), power.unsqueeze(1));
    scale = torch::cat({scale, scale}, -1);
    const torch::Tensor q_scale = scale.narrow(0, keys - queries, queries);
    const torch::Tensor k_scale = scale.reciprocal();
    q = q * q_cosine * q_scale + rotate_half(q) * q_sine * q_scale;
    k = k * cosine * k_scale + rotate_half(k) * sine * k_scale;
  }

 private:
  bool use_xpos_;
  torch::Tensor frequencies_, scale_;
  double scale_base_ = 0;
};

}  // namespace

class FaceAttentionBlock::Local : public nn::Module {
 public:
  Local(std::int64_t dim, const MeshAutoencoderConfig& config)
      : config_(config.local_attn_kwargs),
        window_(config.local_attn_window_size),
        dropout_(config.attn_dropout),
        norm_(nn::LayerNormOptions({dim})),
        to_qkv_(linear(dim, 3 * config_.dim_head * config_.heads)),
        to_out_(linear(config_.dim_head * config_.heads, dim)) {
    if (config_.qk_rmsnorm) {
      q_scale_ = register_parameter("q_scale", torch::ones({config_.dim_head}));
      k_scale_ = register_parameter("k_scale", torch::ones({config_.dim_head}));
    }
    register_module("norm", norm_);
    register_module("to_qkv", to_qkv_);
    if (config_.use_rotary_pos_emb) {
      rotary_ = std::make_shared<Rotary>(config_, window_);
      register_module("attn_fn", named({{"rel_pos", rotary_}}));
    }
    if (config_.gate_values_per_head) {
      to_gates_ = nn::Linear(dim, config_.heads);
      register_module("to_v_gate", named({{"0", to_gates_.ptr()}}));
    }
    register_module("to_out", to_out_);
  }

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& mask) {
    const torch::Tensor x = norm_->forward(input);
    auto qkv = to_qkv_->forward(x).unflatten(-1, {3, config_.heads, -1}).permute({2, 0, 3, 1, 4});
    torch::Tensor q = qkv[0], k = qkv[1];
    if (config_.qk_rmsnorm) {
      q = unit(q) * q_scale_;
      k = unit(k) * k_scale_;
    }
    torch::Tensor out = attend(q, k, qkv[2], mask);
    if (to_gates_) {
      out = out * project(to_gates_, x).transpose(1, 2).unsqueeze(-1).sigmoid();
    }
    return to_out_->forward(out.transpose(1, 2).flatten(2));
  }

 private:
  // All [batch, heads, faces, dim].
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& mask) {
    const std::int64_t faces = q.size(2), windows = (faces + window_ - 1) / window_;
    const std::int64_t more = windows * window_ - faces;
    auto in_windows = [&](const torch::Tensor& t) {
      return torch::constant_pad_nd(t.flatten(0, 1), {0, 0, 0, more}).unflatten(1, {windows, -1});
    };
    const double scale = config_.qk_rmsnorm ? config_.qk_scale
                                            : 1 / std::sqrt(static_cast<double>(config_.dim_head));
    torch::Tensor wq = in_windows(q) * scale;
    torch::Tensor wk = look_around(in_windows(config_.shared_qk ? unit(k) : k), config_, -1);
    const torch::Tensor wv = look_around(in_windows(v), config_, -1);
    if (rotary_) rotary_->rotate(wq, wk);
    torch::Tensor dots = torch::matmul(wq, wk.transpose(-1, -2));
    const torch::Tensor places =
        torch::arange(windows * window_, q.options().dtype(torch::kInt64)).view({1, windows, -1});
    const torch::Tensor of_q = places.unsqueeze(-1);
    const torch::Tensor of_k = look_around(places, config_, -1).unsqueeze(-2);
    if (config_.shared_qk) dots = dots.masked_fill(of_q == of_k, -5e4);
    torch::Tensor hidden = of_k == -1;
    if (config_.exact_windowsize) {
      hidden = hidden.logical_or(of_k - window_ * config_.look_forward > of_q)
                   .logical_or(of_q > of_k + window_ * config_.look_backward);
    }
    const torch::Tensor valid = look_around(
        torch::constant_pad_nd(mask, {0, more}, false).unflatten(1, {windows, -1}), config_, false);
    // [batch, windows, queries, keys]
    hidden = hidden.logical_or(valid.logical_not().unsqueeze(-2));
    dots = dots.unflatten(0, {-1, config_.heads})
               .masked_fill(hidden.unsqueeze(1), -std::numeric_limits<float>::max())
               .flatten(0, 1);
    torch::Tensor weights = dots.softmax(-1);
    if (dropout_ > 0) weights = torch::dropout(weights, dropout_, is_training());
    return torch::matmul(weights, wv)
        .flatten(1, 2)
        .narrow(1, 0, faces)
        .unflatten(0, {-1, config_.heads});
  }

  LocalAttentionConfig config_;
  std::int64_t window_;
  double dropout_;
  nn::LayerNorm norm_;
  nn::Linear to_qkv_, to_out_, to_gates_{nullptr};
  torch::Tensor q_scale_, k_scale_;
  std::shared_ptr<Rotary> rotary_;
};

class FaceAttentionBlock::Gated : public nn::Module {
 public:
  Gated(std::int64_t dim, double dropout)
      : dropout_(dropout),
        norm_(register_module("0", std::make_shared<ScaledNorm>("g", dim))),
        in_(dim, 8 * dim),
        out_(4 * dim, dim) {
    const ModulePointer layers = named({{"0", named({{"proj", in_.ptr()}})}, {"2", out_.ptr()}});
    register_module("1", named({{"ff", layers}}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto halves = project(in_, norm_->forward(x)).chunk(2, -1);
    return project(out_,
                   torch::dropout(halves[0] * torch::gelu(halves[1]), dropout_, is_training()));
  }

 private:
  double dropout_;
  std::shared_ptr<ScaledNorm> norm_;
  nn::Linear in_, out_;
};

FaceAttentionBlock::FaceAttentionBlock(std::int64_t dim, const MeshAutoencoderConfig& config) {
  if (config.use_linear_attn) {
    linear_ = register_module("0", std::make_shared<Linear>(dim, config.linear_attn_kwargs));
  }
  local_ = register_module("1", std::make_shared<Local>(dim, config));
  gated_ = register_module("2", std::make_shared<Gated>(dim, config.ff_dropout));
}

FaceAttentionBlock::~FaceAttentionBlock() = default;

torch::Tensor FaceAttentionBlock::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  torch::Tensor y = x;
  if (linear_) y = linear_->forward(y, mask) + y;
  y = local_->forward(y, mask) + y;
  return gated_->forward(y) + y;
}

}  // namespace millrace
