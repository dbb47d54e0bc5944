#include "decoder_layers.h"

#include "video_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <torch/torch.h>

namespace millrace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

nn::Linear linear(std::int64_t in, std::int64_t out, bool bias = false) {
  return nn::Linear(nn::LinearOptions(in, out).bias(bias));
}

torch::Tensor to_unit_length(const torch::Tensor& x) {
  return F::normalize(x, F::NormalizeFuncOptions().dim(-1));
}

// A LayerNorm without a bias, or one of the norms that take the length alone.
class Norm : public nn::Module {
 public:
  Norm(const DecoderArguments& arguments, std::int64_t dim)
      : scale_(std::sqrt(static_cast<double>(dim))) {
    if (arguments.use_scalenorm) {
      factor_ = register_parameter("g", torch::ones({1}));
    } else if (arguments.use_rmsnorm) {
      factor_ = register_parameter("g", torch::ones({dim}));
    } else if (!arguments.use_simple_rmsnorm) {
      weight_ = register_parameter("weight", torch::ones({dim}));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {
    if (weight_.defined()) return torch::layer_norm(x, weight_.sizes(), weight_);
    const torch::Tensor y = to_unit_length(x) * scale_;
    return factor_.defined() ? y * factor_ : y;
  }

 private:
  double scale_;
  torch::Tensor weight_, factor_;
};

}  // namespace

// What a layer is given besides x.
struct LayerInput {
  const Positions& positions;
  const DecoderContext& context;
  const torch::Tensor& mask;  // of the keys
  AttentionCache* cache;
};

class DecoderLayer : public nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const LayerInput& input) = 0;
  virtual bool attends() const { return false; }
};

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
    to_q_ = register_module("to_q", linear(options.dim, inner));
    to_k_ = register_module("to_k", linear(from, kv_heads_ * options.dim_head));
    to_v_ = register_module("to_v", linear(from, kv_heads_ * options.dim_head));
    if (arguments_.attn_gate_values) {
      to_gate_ = register_module("to_v_gate", linear(options.dim, inner, true));
      nn::init::zeros_(to_gate_->weight);
      nn::init::constant_(to_gate_->bias, 10);
    }
    to_out_ = register_module("to_out", linear(inner, options.dim));
  }

  bool attends() const override { return true; }

  torch::Tensor forward(const torch::Tensor& x, const LayerInput& input) override {
    torch::Tensor q = to_q_->forward(x).unflatten(-1, {options_.heads, -1}).transpose(1, 2);
    if (arguments_.attn_qk_norm) q = scaled(to_unit_length(q), query_scale_);
    if (!cross_) q = input.positions.turned(q);
    const AttentionCache seen = keys_and_values(x, input);
    const torch::Tensor mask = cross_ ? input.context.mask : input.mask;
    torch::Tensor out = attend(q, with_memory(seen.keys, memory_keys_, true),
                               with_memory(seen.values, memory_values_, false), mask,
                               cross_ ? torch::Tensor() : input.positions.bias);
    if (head_scale_.defined()) out = out * head_scale_;
    out = out.transpose(1, 2).flatten(2);
    if (to_gate_) out = out * to_gate_->forward(x).sigmoid();
    return to_out_->forward(out);
  }

 private:
  static torch::Tensor scaled(const torch::Tensor& x, const torch::Tensor& factor) {
    return factor.defined() ? x * factor : x;
  }

  // Of x or of the text, after those in the cache. The text's stay as they are.
  AttentionCache keys_and_values(const torch::Tensor& x, const LayerInput& input) {
    if (cross_ && input.cache != nullptr && input.cache->keys.defined()) return *input.cache;
    const torch::Tensor& from = cross_ ? input.context.embeds : x;
    auto heads = [&](const torch::Tensor& t) {
      return t.unflatten(-1, {kv_heads_, -1}).transpose(1, 2);
    };
    AttentionCache seen{heads(to_k_->forward(from)), heads(to_v_->forward(from))};
    if (arguments_.attn_qk_norm) seen.keys = scaled(to_unit_length(seen.keys), key_scale_);
    if (!cross_) seen.keys = input.positions.turned(seen.keys);
    if (input.cache == nullptr) return seen;
    if (input.cache->keys.defined()) {
      seen.keys = torch::cat({input.cache->keys, seen.keys}, -2);
      seen.values = torch::cat({input.cache->values, seen.values}, -2);
    }
    *input.cache = seen;
    return seen;
  }

  // The learned ones stand first. Fewer heads of keys serve several of queries.
  torch::Tensor with_memory(const torch::Tensor& seen, const torch::Tensor& memory,
                            bool keys) const {
    torch::Tensor all = seen;
    if (memory.defined()) {
      torch::Tensor first = memory;
      if (keys && arguments_.attn_qk_norm) first = scaled(to_unit_length(first), key_scale_);
      all = torch::cat({first.unsqueeze(0).expand({seen.size(0), -1, -1, -1}), seen}, -2);
    }
    if (kv_heads_ == options_.heads) return all;
    return all.repeat({1, options_.heads / kv_heads_, 1, 1});
  }

  // True where a query may look, or undefined: everywhere.
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

  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& mask, const torch::Tensor& bias) {
    const double scale = arguments_.attn_qk_norm
                             ? arguments_.attn_qk_norm_scale
                             : 1 / std::sqrt(static_cast<double>(options_.dim_head));
    const double dropout = is_training() ? options_.dropout : 0;
    torch::Tensor where = allowed(mask, q.size(-2), k.size(-2), q.device());
    torch::Tensor more = bias;
    if (more.defined()) more = torch::pad(more, {memories_, 0}).unsqueeze(0);
    if (options_.flash) {
      if (more.defined()) {
        if (where.defined()) more = more.masked_fill(where.logical_not(), lowest() / 2);
        where = more;
      }
      const std::optional<torch::Tensor> mask_or_bias =
          where.defined() ? std::optional(where) : std::nullopt;
      return at::scaled_dot_product_attention(q, k, v, mask_or_bias, dropout, false, scale);
    }
    torch::Tensor alike = torch::matmul(q, k.transpose(-2, -1)) * scale;
    if (more.defined()) alike = alike + more;
    if (where.defined()) alike = alike.masked_fill(where.logical_not(), lowest());
    torch::Tensor weights = alike.softmax(-1);
    if (dropout > 0) weights = torch::dropout(weights, dropout, true);
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

class FeedForward : public DecoderLayer {
 public:
  explicit FeedForward(const DecoderOptions& options)
      : arguments_(options.arguments), dropout_(options.dropout) {
    const auto inner =
        static_cast<std::int64_t>(static_cast<double>(options.dim) * arguments_.ff_mult);
    const bool bias = !arguments_.ff_no_bias;
    const auto first = std::make_shared<nn::Module>();
    if (arguments_.ff_glu) {
      if (arguments_.ff_glu_mult_bias) {
        factor_ = first->register_parameter("mult_bias", torch::ones({inner}));
      }
      in_ = first->register_module("proj", linear(options.dim, inner * 2, true));
    } else {
      in_ = first->register_module("0", linear(options.dim, inner, bias));
    }
    out_ = linear(inner, options.dim, bias);
    std::vector<std::pair<std::string, ModulePointer>> parts{{"0", first}};
    if (arguments_.ff_post_act_ln) {
      norm_ = std::make_shared<Norm>(DecoderArguments{}, inner);
      parts.emplace_back("1", norm_);
    }
    parts.emplace_back(norm_ ? "3" : "2", out_.ptr());
    register_module("ff", named(parts));
  }

  torch::Tensor forward(const torch::Tensor& x, const LayerInput& /*input*/) override {
    torch::Tensor y = in_->forward(x);
    if (arguments_.ff_glu) {
      const std::vector<torch::Tensor> halves = y.chunk(2, -1);
      y = halves[0] * activation(halves[1]);
      if (factor_.defined()) y = y * factor_;
    } else {
      y = activation(y);
    }
    if (norm_) y = norm_->forward(y);
    if (dropout_ > 0) y = torch::dropout(y, dropout_, is_training());
    return out_->forward(y);
  }

 private:
  torch::Tensor activation(const torch::Tensor& x) const {
    if (arguments_.ff_relu_squared) return torch::relu(x).square();
    return arguments_.ff_swish ? torch::silu(x) : torch::gelu(x);
  }

  DecoderArguments arguments_;
  double dropout_;
  torch::Tensor factor_;
  nn::Linear in_{nullptr}, out_{nullptr};
  std::shared_ptr<Norm> norm_;
};

// A layer between its norms, added to what came in.
class Block : public DecoderLayer {
 public:
  Block(const DecoderOptions& options, std::shared_ptr<DecoderLayer> layer)
      : layer_(std::move(layer)), before_(std::make_shared<Norm>(options.arguments, options.dim)) {
    std::vector<std::pair<std::string, ModulePointer>> norms{{"0", before_}};
    if (options.arguments.sandwich_norm) {
      after_ = std::make_shared<Norm>(options.arguments, options.dim);
      norms.emplace_back("1", after_);
    }
    register_module("0", named(norms));
    register_module("1", layer_);
    if (options.arguments.scale_residual) {
      const auto residual = register_module("2", std::make_shared<nn::Module>());
      residual_scale_ = residual->register_parameter("residual_scale", torch::ones({options.dim}));
    }
  }
  bool attends() const override { return layer_->attends(); }
  torch::Tensor forward(const torch::Tensor& x, const LayerInput& input) override {
    torch::Tensor y = layer_->forward(before_->forward(x), input);
    if (after_) y = after_->forward(y);
    return y + (residual_scale_.defined() ? x * residual_scale_ : x);
  }

 private:
  std::shared_ptr<DecoderLayer> layer_;
  std::shared_ptr<Norm> before_, after_;
  torch::Tensor residual_scale_;
};

}  // namespace

DecoderLayers::DecoderLayers(const DecoderOptions& options)
    : positions_(options.arguments, options.heads, options.dim_head) {
  const auto layers = register_module("layers", std::make_shared<nn::Module>());
  auto add = [&](std::shared_ptr<DecoderLayer> layer) {
    layers_.push_back(std::make_shared<Block>(options, std::move(layer)));
    layers->register_module(std::to_string(layers_.size() - 1), layers_.back());
  };
  for (std::int64_t i = 0; i < options.depth; ++i) {
    add(std::make_shared<Attention>(options, false));
    if (options.cross_dim > 0) add(std::make_shared<Attention>(options, true));
    add(std::make_shared<FeedForward>(options));
  }
  positions_.register_in(*this);
  final_norm_ =
      register_module("final_norm", std::make_shared<Norm>(options.arguments, options.dim));
}

DecoderLayers::~DecoderLayers() = default;

torch::Tensor DecoderLayers::forward(const torch::Tensor& x, const DecoderContext& context,
                                     DecoderCache* cache, const torch::Tensor& mask) {
  const auto attentions = static_cast<std::size_t>(
      std::ranges::count_if(layers_, [](const auto& layer) { return layer->attends(); }));
  std::int64_t before = 0;
  if (cache != nullptr) {
    cache->resize(attentions);
    if (attentions > 0 && cache->front().keys.defined()) before = cache->front().keys.size(-2);
  }
  const Positions where = positions_.of(x.size(1), before, x.device());
  torch::Tensor y = x;
  std::size_t next = 0;
  for (const auto& layer : layers_) {
    AttentionCache* its = cache != nullptr && layer->attends() ? &(*cache)[next++] : nullptr;
    y = layer->forward(y, {where, context, mask, its});
  }
  return std::static_pointer_cast<Norm>(final_norm_)->forward(y);
}

}  // namespace millrace
