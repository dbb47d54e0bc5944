#include "decoder_attention.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/ops/decoder_functions.h>
#include <millrace/training/models/ops/linear_function.h>

#include <cmath>
#include <limits>
#include <optional>

namespace millrace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

nn::Linear decoder_linear(std::int64_t in, std::int64_t out, bool bias) {
  return nn::Linear(nn::LinearOptions(in, out).bias(bias));
}

torch::Tensor to_unit_length(const torch::Tensor& x) {
  return F::normalize(x, F::NormalizeFuncOptions().dim(-1));
}

namespace {

class Attention : public DecoderLayer {
 public:
  Attention(const DecoderOptions& options, bool cross)
      : options_(options),
        arguments_(options.arguments),
        cross_(cross),
        causal_(options.causal && !cross),
        kv_heads_(arguments_.attn_one_kv_head ? 1
                                              : arguments_.attn_kv_heads.value_or(options.heads)),
        memories_(cross ? options.cross_num_mem_kv : arguments_.attn_num_mem_kv) {
    const std::int64_t inner = options.heads * options.dim_head;
    const std::int64_t from = cross ? options.cross_dim : options.dim;
    if (arguments_.attn_qk_norm && arguments_.attn_qk_norm_dim_scale) {
      query_scale_ =
          register_parameter("qk_norm_q_scale", torch::ones({options.heads, 1, options.dim_head}));
      key_scale_ =
          register_parameter("qk_norm_k_scale", torch::ones({options.heads, 1, options.dim_head}));
    }
    if (arguments_.attn_head_scale) {
      head_scale_ = register_parameter("head_scale_params", torch::ones({1, options.heads, 1, 1}));
    }
    if (memories_ > 0) {
      memory_keys_ =
          register_parameter("mem_k", torch::randn({kv_heads_, memories_, options.dim_head}));
      memory_values_ =
          register_parameter("mem_v", torch::randn({kv_heads_, memories_, options.dim_head}));
    }
    to_q_ = register_module("to_q", decoder_linear(options.dim, inner));
    to_k_ = register_module("to_k", decoder_linear(from, kv_heads_ * options.dim_head));
    to_v_ = register_module("to_v", decoder_linear(from, kv_heads_ * options.dim_head));
    if (arguments_.attn_gate_values) {
      to_gate_ = register_module("to_v_gate", decoder_linear(options.dim, inner, true));
      nn::init::zeros_(to_gate_->weight);
      nn::init::constant_(to_gate_->bias, 10);
    }
    to_out_ = register_module("to_out", decoder_linear(inner, options.dim));
  }

  bool attends() const override { return true; }

  torch::Tensor forward(const torch::Tensor& x, const LayerInput& input) override {
    torch::Tensor out =
        fuses_qkv(input) ? attend_fused_qkv(x, input) : attend_separate_qkv(x, input);
    if (head_scale_.defined()) out = out * head_scale_.transpose(1, 2);
    out = out.flatten(2);
    if (to_gate_) out = out * to_gate_->forward(x).sigmoid();
    return options_.reference ? to_out_->forward(out) : linear_product(out, to_out_->weight);
  }

 private:
  static torch::Tensor scaled(const torch::Tensor& x, const torch::Tensor& factor) {
    return factor.defined() ? x * factor : x;
  }

  // Applies qk-norm and rotary embeddings. [batch, heads, length, channels]
  torch::Tensor normed_and_rotated(const torch::Tensor& x, const torch::Tensor& factor,
                                   const LayerInput& input) const {
    const torch::Tensor y = arguments_.attn_qk_norm ? scaled(to_unit_length(x), factor) : x;
    return cross_ ? y : input.positions.rotated(y);
  }

  // Whether queries, keys and values are computed by one matrix product. With a KV cache there is
  // only one token, and concatenating the weights would take longer than the product.
  bool fuses_qkv(const LayerInput& input) const {
    return !cross_ && !options_.reference && input.cache == nullptr;
  }

  // Returns [batch, length, heads, channels].
  torch::Tensor attend_fused_qkv(const torch::Tensor& x, const LayerInput& input) {
    const torch::Tensor weights = torch::cat({to_q_->weight, to_k_->weight, to_v_->weight});
    torch::Tensor qkv = linear_product(x, weights).unflatten(-1, {-1, options_.dim_head});
    const bool unchanged = !arguments_.attn_qk_norm && !input.positions.cosine.defined();
    const bool needs_general_attention = !causal_ || input.mask.defined() ||
                                         input.positions.bias.defined() || dropout() > 0 ||
                                         !short_enough(qkv, x.size(1), memories_);
    if (unchanged && !needs_general_attention) return attend_short(qkv);
    const std::vector<torch::Tensor> parts =
        qkv.transpose(1, 2).split_with_sizes({options_.heads, kv_heads_, kv_heads_}, 1);
    const torch::Tensor q = normed_and_rotated(parts[0], query_scale_, input);
    const torch::Tensor k = normed_and_rotated(parts[1], key_scale_, input);
    if (!needs_general_attention) {
      return attend_short(torch::cat({q, k, parts[2]}, 1).transpose(1, 2));
    }
    return attend(q, {k, parts[2]}, input).transpose(1, 2);
  }

  torch::Tensor attend_short(const torch::Tensor& qkv) const {
    return short_attention(qkv, memory_keys(), memory_values_, options_.heads, scale());
  }

  torch::Tensor attend_separate_qkv(const torch::Tensor& x, const LayerInput& input) {
    const torch::Tensor q = to_q_->forward(x).unflatten(-1, {options_.heads, -1}).transpose(1, 2);
    return attend(normed_and_rotated(q, query_scale_, input), keys_and_values(x, input), input)
        .transpose(1, 2);
  }

  // Keys and values of x, appended to the cache, or of the text, computed once.
  AttentionCache keys_and_values(const torch::Tensor& x, const LayerInput& input) {
    if (cross_ && input.cache != nullptr && input.cache->keys.defined()) return *input.cache;
    const torch::Tensor& from = cross_ ? input.context.embeds : x;
    auto heads = [&](const torch::Tensor& t) {
      return t.unflatten(-1, {kv_heads_, -1}).transpose(1, 2);
    };
    AttentionCache seen{normed_and_rotated(heads(to_k_->forward(from)), key_scale_, input),
                        heads(to_v_->forward(from))};
    if (input.cache == nullptr) return seen;
    if (input.cache->keys.defined()) {
      seen.keys = torch::cat({input.cache->keys, seen.keys}, -2);
      seen.values = torch::cat({input.cache->values, seen.values}, -2);
    }
    *input.cache = seen;
    return seen;
  }

  torch::Tensor memory_keys() const {
    if (!memory_keys_.defined() || !arguments_.attn_qk_norm) return memory_keys_;
    return scaled(to_unit_length(memory_keys_), key_scale_);
  }

  // Prepends the learned keys or values. Repeats key heads if there are fewer than query heads.
  torch::Tensor with_memory(const torch::Tensor& seen, const torch::Tensor& memory) const {
    torch::Tensor all = seen;
    if (memory.defined()) {
      all = torch::cat({memory.unsqueeze(0).expand({seen.size(0), -1, -1, -1}), seen}, -2);
    }
    if (kv_heads_ == options_.heads) return all;
    return all.repeat({1, options_.heads / kv_heads_, 1, 1});
  }

  // True where a query may attend; undefined: everywhere.
  torch::Tensor allowed(const torch::Tensor& mask, std::int64_t queries, std::int64_t keys,
                        const torch::Device& device) const {
    torch::Tensor where;
    if (mask.defined()) {
      where = torch::pad(mask, {memories_, 0}, "constant", 1).unsqueeze(1).unsqueeze(1);
    }
    if (!causal_ || queries == 1) return where;
    const torch::Tensor earlier =
        torch::ones({queries, keys}, torch::dtype(torch::kBool).device(device))
            .tril(keys - queries);
    return where.defined() ? where.logical_and(earlier) : earlier;
  }

  double dropout() const { return is_training() ? options_.dropout : 0; }
  double scale() const {
    return arguments_.attn_qk_norm ? arguments_.attn_qk_norm_scale
                                   : 1 / std::sqrt(static_cast<double>(options_.dim_head));
  }

  // Uses the fused causal attention, which skips masked keys. Its causal mask is square, so zero
  // queries for the learned keys are prepended and their outputs dropped.
  torch::Tensor attend_to_earlier(const torch::Tensor& q, const torch::Tensor& k,
                                  const torch::Tensor& v) const {
    const torch::Tensor more = memories_ > 0 ? torch::pad(q, {0, 0, memories_, 0}) : q;
    return at::scaled_dot_product_attention(more, k, v, std::nullopt, dropout(), true, scale())
        .slice(2, memories_);
  }

  torch::Tensor attend(const torch::Tensor& q, const AttentionCache& seen,
                       const LayerInput& input) const {
    const torch::Tensor k = with_memory(seen.keys, memory_keys());
    const torch::Tensor v = with_memory(seen.values, memory_values_);
    const torch::Tensor mask = cross_ ? input.context.mask : input.mask;
    torch::Tensor more = cross_ ? torch::Tensor() : input.positions.bias;
    if (causal_ && options_.flash && !options_.reference && !mask.defined() && !more.defined() &&
        k.size(-2) == q.size(-2) + memories_) {
      return attend_to_earlier(q, k, v);
    }
    torch::Tensor where = allowed(mask, q.size(-2), k.size(-2), q.device());
    if (more.defined()) more = torch::pad(more, {memories_, 0}).unsqueeze(0);
    if (options_.flash) {
      if (more.defined()) {
        if (where.defined()) more = more.masked_fill(where.logical_not(), lowest() / 2);
        where = more;
      }
      const std::optional<torch::Tensor> mask_or_bias =
          where.defined() ? std::optional(where) : std::nullopt;
      return at::scaled_dot_product_attention(q, k, v, mask_or_bias, dropout(), false, scale());
    }
    torch::Tensor logits = torch::matmul(q, k.transpose(-2, -1)) * scale();
    if (more.defined()) logits = logits + more;
    if (where.defined()) logits = logits.masked_fill(where.logical_not(), lowest());
    torch::Tensor weights = logits.softmax(-1);
    if (dropout() > 0) weights = torch::dropout(weights, dropout(), true);
    return torch::matmul(weights, v);
  }

  static double lowest() { return std::numeric_limits<float>::lowest(); }

  DecoderOptions options_;
  DecoderArguments arguments_;
  bool cross_, causal_;
  std::int64_t kv_heads_, memories_;
  torch::Tensor query_scale_, key_scale_, head_scale_, memory_keys_, memory_values_;
  nn::Linear to_q_{nullptr}, to_k_{nullptr}, to_v_{nullptr}, to_gate_{nullptr}, to_out_{nullptr};
};

}  // namespace

std::shared_ptr<DecoderLayer> make_attention(const DecoderOptions& options, bool cross) {
  return std::make_shared<Attention>(options, cross);
}

}  // namespace millrace
