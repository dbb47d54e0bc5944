#include "mulan_layers.h"

#include <millrace/training/device/torch_api.h>

#include <limits>

namespace millrace {

namespace F = torch::nn::functional;

namespace {

constexpr double logit_scale = 8;

torch::nn::Linear linear(std::int64_t in, std::int64_t out) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
}

// GEGLU: the first half times the GELU of the second half.
class GatedGeluImpl : public torch::nn::Module {
 public:
  torch::Tensor forward(const torch::Tensor& x) {  // NOLINT: Sequential calls a non-static method
    const std::vector<torch::Tensor> halves = x.chunk(2, -1);
    return F::gelu(halves[1]) * halves[0];
  }
};
TORCH_MODULE(GatedGelu);

torch::nn::Sequential feed_forward(const MulanTransformerConfig& config) {
  const auto inner =
      static_cast<std::int64_t>(static_cast<double>(config.dim) * config.ff_mult * 2 / 3);
  return torch::nn::Sequential(GainNorm(config.dim), linear(config.dim, inner * 2), GatedGelu(),
                               torch::nn::Dropout(config.ff_dropout), linear(inner, config.dim));
}

// One transformer layer: attention and feed-forward.
class MulanLayerImpl : public torch::nn::Module {
 public:
  explicit MulanLayerImpl(const MulanTransformerConfig& config)
      : attention_(register_module("0", MulanAttention(config))),
        feed_forward_(register_module("1", feed_forward(config))) {}

  torch::Tensor forward(const torch::Tensor& x, const AttentionBias& bias) {
    const torch::Tensor attended = attention_->forward(x, bias) + x;
    return feed_forward_->forward(attended) + attended;
  }

 private:
  MulanAttention attention_;
  torch::nn::Sequential feed_forward_;
};

}  // namespace

torch::Tensor unit_length(const torch::Tensor& x) {
  return F::normalize(x, F::NormalizeFuncOptions().dim(-1));
}

GainNormImpl::GainNormImpl(std::int64_t dim) {
  gain_ = register_parameter("learned_gamma", torch::ones(dim));
}

torch::Tensor GainNormImpl::forward(const torch::Tensor& x) {
  return torch::layer_norm(x, gain_.sizes(), gain_);
}

MulanAttentionImpl::MulanAttentionImpl(const MulanTransformerConfig& config)
    : heads_(config.heads), dropout_(config.attn_dropout) {
  const std::int64_t inner = config.dim_head * config.heads;
  q_scale_ = register_parameter("q_scale", torch::ones(config.dim_head));
  k_scale_ = register_parameter("k_scale", torch::ones(config.dim_head));
  norm_ = register_module("norm", GainNorm(config.dim));
  to_q_ = register_module("to_q", linear(config.dim, inner));
  to_kv_ = register_module("to_kv", linear(config.dim, inner * 2));
  to_out_ = register_module(
      "to_out",
      torch::nn::Sequential(linear(inner, config.dim), torch::nn::Dropout(config.attn_dropout)));
}

torch::Tensor MulanAttentionImpl::forward(const torch::Tensor& x, const AttentionBias& bias) {
  const torch::Tensor normed = norm_->forward(x);
  const std::vector<torch::Tensor> kv = to_kv_->forward(normed).chunk(2, -1);
  auto split = [&](const torch::Tensor& t) {  // [batch, heads, positions, dim_head]
    return t.unflatten(-1, {heads_, -1}).transpose(1, 2);
  };
  const torch::Tensor q = unit_length(split(to_q_->forward(normed)));
  const torch::Tensor k = unit_length(split(kv[0])), v = split(kv[1]);
  const torch::Tensor out =
      bias.reference ? attend_reference(q, k, v, bias) : attend(q, k, v, bias);
  return to_out_->forward(out.transpose(1, 2).flatten(2));
}

torch::Tensor MulanAttentionImpl::attend(const torch::Tensor& queries, const torch::Tensor& keys,
                                         const torch::Tensor& v, const AttentionBias& bias) const {
  // The logits' factor of 8 is folded into the scale of the queries.
  const torch::Tensor q = queries * (q_scale_ * logit_scale), k = keys * k_scale_;
  if (bias.bias.defined() && bias.bias.requires_grad()) {
    // Fused attention computes no gradient for the bias, so attention is written out.
    torch::Tensor attention = torch::matmul(q, k.transpose(-1, -2)).add_(bias.bias).softmax(-1);
    if (is_training() && dropout_ > 0) attention = torch::dropout(attention, dropout_, true);
    return torch::matmul(attention, v);
  }
  c10::optional<torch::Tensor> mask;
  if (bias.bias.defined()) mask = bias.bias;
  if (bias.seen.defined()) mask = bias.seen.unsqueeze(1).unsqueeze(1);
  return at::scaled_dot_product_attention(q, k, v, mask, is_training() ? dropout_ : 0.0,
                                          /*is_causal=*/false, /*scale=*/1.0);
}

torch::Tensor MulanAttentionImpl::attend_reference(const torch::Tensor& queries,
                                                   const torch::Tensor& keys,
                                                   const torch::Tensor& v,
                                                   const AttentionBias& bias) const {
  const torch::Tensor q = queries * q_scale_, k = keys * k_scale_;
  torch::Tensor logits = torch::einsum("bhid,bhjd->bhij", {q, k}) * logit_scale;
  if (bias.bias.defined()) logits = logits + bias.bias;
  if (bias.seen.defined()) {
    logits = logits.masked_fill(bias.seen.logical_not().unsqueeze(1).unsqueeze(1),
                                -std::numeric_limits<float>::max());
  }
  const torch::Tensor attention = torch::dropout(logits.softmax(-1), dropout_, is_training());
  return torch::einsum("bhij,bhjd->bhid", {attention, v});
}

MulanTransformerImpl::MulanTransformerImpl(const MulanTransformerConfig& config) {
  layers_ = register_module("layers", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < config.depth; ++i) {
    layers_->push_back(std::make_shared<MulanLayerImpl>(config));
  }
}

torch::Tensor MulanTransformerImpl::forward(torch::Tensor x, const AttentionBias& bias,
                                            std::vector<torch::Tensor>* layers) {
  for (const auto& layer : *layers_) {
    x = layer->as<MulanLayerImpl>()->forward(x, bias);
    if (layers != nullptr) layers->push_back(x);
  }
  return x;
}

}  // namespace millrace
