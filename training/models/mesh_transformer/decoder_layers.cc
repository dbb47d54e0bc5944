#include "decoder_layers.h"

#include "decoder_attention.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/ops/decoder_functions.h>
#include <millrace/training/models/ops/linear_function.h>
#include <millrace/training/models/video_tokenizer/video_layers.h>

#include <algorithm>
#include <cmath>

namespace millrace {

namespace nn = torch::nn;

namespace {

// LayerNorm without a bias, ScaleNorm, or one of the RMS norms.
class Norm : public nn::Module {
 public:
  Norm(const DecoderArguments& arguments, std::int64_t dim, bool reference)
      : scale_(std::sqrt(static_cast<double>(dim))), reference_(reference) {
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
    if (!reference_ && factor_.defined() && factor_.size(0) == x.size(-1)) {
      return unit_norm(x, factor_, scale_);
    }
    const torch::Tensor y = to_unit_length(x) * scale_;
    return factor_.defined() ? y * factor_ : y;
  }

 private:
  double scale_;
  bool reference_;
  torch::Tensor weight_, factor_;
};

class FeedForward : public DecoderLayer {
 public:
  explicit FeedForward(const DecoderOptions& options)
      : arguments_(options.arguments), reference_(options.reference), dropout_(options.dropout) {
    const auto inner =
        static_cast<std::int64_t>(static_cast<double>(options.dim) * arguments_.ff_mult);
    const bool bias = !arguments_.ff_no_bias;
    const auto first = std::make_shared<nn::Module>();
    if (arguments_.ff_glu) {
      if (arguments_.ff_glu_mult_bias) {
        factor_ = first->register_parameter("mult_bias", torch::ones({inner}));
      }
      in_ = first->register_module("proj", decoder_linear(options.dim, inner * 2, true));
    } else {
      in_ = first->register_module("0", decoder_linear(options.dim, inner, bias));
    }
    out_ = decoder_linear(inner, options.dim, bias);
    std::vector<std::pair<std::string, ModulePointer>> parts{{"0", first}};
    if (arguments_.ff_post_act_ln) {
      norm_ = std::make_shared<Norm>(DecoderArguments{}, inner, reference_);
      parts.emplace_back("1", norm_);
    }
    parts.emplace_back(norm_ ? "3" : "2", out_.ptr());
    register_module("ff", named(parts));
  }

  torch::Tensor forward(const torch::Tensor& x, const LayerInput& /*input*/) override {
    torch::Tensor y = apply(in_, x);
    if (arguments_.ff_glu) {
      y = gated(y);
      if (factor_.defined()) y = y * factor_;
    } else {
      y = activation(y);
    }
    if (norm_) y = norm_->forward(y);
    if (dropout_ > 0) y = torch::dropout(y, dropout_, is_training());
    return apply(out_, y);
  }

 private:
  torch::Tensor apply(const nn::Linear& linear, const torch::Tensor& x) const {
    if (reference_) return nn::Linear(linear)->forward(x);
    return linear_product(x, linear->weight, linear->bias);
  }
  torch::Tensor gated(const torch::Tensor& x) const {
    if (!reference_ && !arguments_.ff_relu_squared && !arguments_.ff_swish) return gated_gelu(x);
    const std::vector<torch::Tensor> halves = x.chunk(2, -1);
    return halves[0] * activation(halves[1]);
  }
  torch::Tensor activation(const torch::Tensor& x) const {
    if (arguments_.ff_relu_squared) return torch::relu(x).square();
    return arguments_.ff_swish ? torch::silu(x) : torch::gelu(x);
  }

  DecoderArguments arguments_;
  bool reference_;
  double dropout_;
  torch::Tensor factor_;
  nn::Linear in_{nullptr}, out_{nullptr};
  std::shared_ptr<Norm> norm_;
};

// Norm, layer, optional norm, residual connection.
class Block : public DecoderLayer {
 public:
  Block(const DecoderOptions& options, std::shared_ptr<DecoderLayer> layer)
      : layer_(std::move(layer)),
        before_(std::make_shared<Norm>(options.arguments, options.dim, options.reference)) {
    std::vector<std::pair<std::string, ModulePointer>> norms{{"0", before_}};
    if (options.arguments.sandwich_norm) {
      after_ = std::make_shared<Norm>(options.arguments, options.dim, options.reference);
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
    add(make_attention(options, false));
    if (options.cross_dim > 0) add(make_attention(options, true));
    add(std::make_shared<FeedForward>(options));
  }
  positions_.register_in(*this);
  final_norm_ = register_module(
      "final_norm", std::make_shared<Norm>(options.arguments, options.dim, options.reference));
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
    AttentionCache* layer_cache =
        cache != nullptr && layer->attends() ? &(*cache)[next++] : nullptr;
    y = layer->forward(y, {where, context, mask, layer_cache});
  }
  return std::static_pointer_cast<Norm>(final_norm_)->forward(y);
}

}  // namespace millrace
