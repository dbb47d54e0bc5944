#include "nuwa_attention.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/ops/neighborhood_attention.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <cmath>
#include <limits>

namespace millrace {

namespace nn = torch::nn;

namespace {

nn::Linear without_bias(std::int64_t in, std::int64_t out) {
  return nn::Linear(nn::LinearOptions(in, out).bias(false));
}

// A 1x1 convolution over heads, with the package's parameter name and shape.
class TalkingHeadsImpl : public nn::Module {
 public:
  explicit TalkingHeadsImpl(std::int64_t heads)
      : weight(register_parameter(
            "weight",
            nn::Conv2d(nn::Conv2dOptions(heads, heads, 1).bias(false))->weight.detach())) {}
  // [heads, heads]
  torch::Tensor matrix() const { return weight.flatten(1); }

  torch::Tensor weight;
};
TORCH_MODULE(TalkingHeads);

// Applies rotary position embeddings (rotate-half form) to the first channels.
torch::Tensor rotated(const torch::Tensor& x, const torch::Tensor& angles) {
  const std::int64_t rotary_dim = angles.size(-1);
  const torch::Tensor part = x.narrow(-1, 0, rotary_dim);
  const std::vector<torch::Tensor> halves = part.chunk(2, -1);
  const torch::Tensor crossed = torch::cat({-halves[1], halves[0]}, -1);
  const torch::Tensor done = part * angles.cos() + crossed * angles.sin();
  if (rotary_dim == x.size(-1)) return done;
  return torch::cat({done, x.narrow(-1, rotary_dim, x.size(-1) - rotary_dim)}, -1);
}

class TextAttentionImpl : public NuwaPartImpl {
 public:
  TextAttentionImpl(const NuwaTransformerOptions& o, bool from_video)
      : heads_(o.heads),
        scale_(std::pow(static_cast<double>(o.dim_head), -0.5)),
        dropout_(o.attn_dropout),
        from_video_(from_video),
        null_k_(register_parameter("null_k", torch::randn({o.heads, 1, o.dim_head}))),
        null_v_(register_parameter("null_v", torch::randn({o.heads, 1, o.dim_head}))),
        talking_heads_(register_module("talking_heads", TalkingHeads(o.heads))),
        to_q_(register_module("to_q", without_bias(o.dim, o.heads * o.dim_head))),
        to_kv_(register_module("to_kv", without_bias(o.dim, 2 * o.heads * o.dim_head))),
        to_out_(register_module("to_out", without_bias(o.heads * o.dim_head, o.dim))) {}

  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context) override {
    torch::Tensor q = by_head(project(to_q_, x));
    auto [k, v] = keys_values(from_video_ ? context.text : x);
    if (!from_video_ && context.rotary.defined()) {
      q = rotated(q, context.rotary);
      k = rotated(k, context.rotary);
      v = rotated(v, context.rotary);  // values are rotated too, as in the package
    }
    return attend(q, with_null(k, null_k_), with_null(v, null_v_),
                  from_video_ ? context.text_mask : context.mask);
  }

  // The keys and values of the text are computed once.
  torch::Tensor step(const torch::Tensor& x, std::int64_t /*place*/, const NuwaContext& context,
                     NuwaCache& cache) override {
    if (!cache.keys.defined()) {
      const auto [k, v] = keys_values(context.text);
      cache.keys = with_null(k, null_k_);
      cache.values = with_null(v, null_v_);
    }
    return attend(by_head(project(to_q_, x)), cache.keys, cache.values, context.text_mask);
  }

 private:
  // [batch, heads, tokens, channels]
  torch::Tensor by_head(const torch::Tensor& x) const {
    return x.unflatten(-1, {heads_, -1}).transpose(1, 2);
  }
  std::pair<torch::Tensor, torch::Tensor> keys_values(const torch::Tensor& x) {
    const std::vector<torch::Tensor> both = project(to_kv_, x).chunk(2, -1);
    return {by_head(both[0]), by_head(both[1])};
  }
  // Prepends a learned key or value that is never masked, so that softmax is defined even where the
  // whole text is masked.
  static torch::Tensor with_null(const torch::Tensor& x, const torch::Tensor& null) {
    return torch::cat({null.unsqueeze(0).expand({x.size(0), -1, -1, -1}).to(x.scalar_type()), x},
                      2);
  }
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& mask) {
    torch::Tensor logits = torch::matmul(q * scale_, k.transpose(-1, -2)).to(torch::kFloat32);
    if (mask.defined()) {
      const torch::Tensor hidden = torch::constant_pad_nd(~mask, {1, 0}, 0);
      logits = logits.masked_fill(hidden.unsqueeze(1).unsqueeze(1),
                                  std::numeric_limits<float>::lowest());
    }
    torch::Tensor seen = logits.softmax(-1);
    seen = torch::matmul(talking_heads_->matrix(), seen.flatten(2)).view(seen.sizes());
    if (dropout_ > 0) seen = torch::dropout(seen, dropout_, is_training());
    const torch::Tensor out = torch::matmul(seen.to(v.scalar_type()), v);
    return project(to_out_, out.transpose(1, 2).flatten(2));
  }

  std::int64_t heads_;
  double scale_, dropout_;
  bool from_video_;
  torch::Tensor null_k_, null_v_;
  TalkingHeads talking_heads_;
  nn::Linear to_q_, to_kv_, to_out_;
};

class NearbyAttentionImpl : public NuwaPartImpl {
 public:
  NearbyAttentionImpl(const NuwaTransformerOptions& o, std::int64_t dilation)
      : heads_(o.heads),
        tokens_at_once_(o.frames_at_once * o.video_shape[1] * o.video_shape[2]),
        scale_(std::pow(static_cast<double>(o.dim_head), -0.5)),
        to_q_(register_module("to_q", without_bias(o.dim, o.heads * o.dim_head))),
        to_kv_(register_module("to_kv", without_bias(o.dim, 2 * o.heads * o.dim_head))),
        talking_heads_(register_module("talking_heads", TalkingHeads(o.heads))),
        to_out_(register_module("to_out", nn::Linear(o.heads * o.dim_head, o.dim))),
        table_(causal_neighbours(o.video_shape, o.kernel, {dilation, dilation, dilation})),
        // Only for the state_dict: the package registers this buffer.
        mask_(register_buffer("mask", table_ < 0)) {
    if (o.rel_pos_bias) {
      rel_pos_bias_ = register_module("rel_pos_bias", AxialPositions(o.heads, o.kernel));
    }
  }

  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& /*context*/) override {
    auto [q, k, v] = parts(x);
    std::vector<torch::Tensor> out{v.narrow(1, 0, 1)};  // the start token attends to itself only
    const std::int64_t tokens = x.size(1) - 1;
    const std::int64_t at_once = tokens_at_once_ > 0 ? tokens_at_once_ : tokens;
    for (std::int64_t first = 0; first < tokens; first += at_once) {
      const std::int64_t count = std::min(at_once, tokens - first);
      out.push_back(attend(q.narrow(1, 1 + first, count), k, v, first));
    }
    return project(to_out_, torch::cat(out, 1).flatten(2));
  }

  torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& /*context*/,
                     NuwaCache& cache) override {
    auto [q, k, v] = parts(x);
    if (!cache.keys.defined()) {
      cache.keys = k.new_zeros({k.size(0), cache.longest, k.size(2), k.size(3)});
      cache.values = torch::zeros_like(cache.keys);
    }
    cache.keys.select(1, place).copy_(k.select(1, 0));
    cache.values.select(1, place).copy_(v.select(1, 0));
    const torch::Tensor out = place == 0 ? v : attend(q, cache.keys, cache.values, place - 1);
    return project(to_out_, out.flatten(2));
  }

 private:
  struct Parts {
    torch::Tensor q, k, v;  // [batch, tokens, heads, channels]
  };
  Parts parts(const torch::Tensor& x) {
    const std::vector<torch::Tensor> both = project(to_kv_, x).chunk(2, -1);
    auto by_head = [&](const torch::Tensor& t) { return t.unflatten(-1, {heads_, -1}); };
    return {by_head(project(to_q_, x) * scale_), by_head(both[0]), by_head(both[1])};
  }
  // Attends from the video tokens `first`, `first` + 1, ...
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       std::int64_t first) {
    if (table_.device() != q.device()) table_ = table_.to(q.device());
    const torch::Tensor table = table_.narrow(0, first, q.size(1));
    torch::Tensor logits = nearby_logits(q, k, table);
    if (rel_pos_bias_) {
      const torch::Tensor bias = rel_pos_bias_->forward().transpose(0, 1);
      logits = logits + torch::constant_pad_nd(bias, {1, 0}, 0);
    }
    const torch::Tensor seen = torch::matmul(talking_heads_->matrix(), logits.softmax(-1));
    return nearby_sum(seen, v, table);
  }

  std::int64_t heads_, tokens_at_once_;
  double scale_;
  nn::Linear to_q_, to_kv_;
  TalkingHeads talking_heads_;
  nn::Linear to_out_;
  AxialPositions rel_pos_bias_{nullptr};
  torch::Tensor table_, mask_;
};

class FeedForwardImpl : public NuwaPartImpl {
 public:
  explicit FeedForwardImpl(const NuwaTransformerOptions& o) : dropout_(o.ff_dropout) {
    const std::int64_t inner = o.dim * o.ff_mult * 2 / 3;
    auto net = register_module("net", std::make_shared<nn::Module>());
    in_ = net->register_module("0", without_bias(o.dim, 2 * inner));
    out_ = net->register_module("3", without_bias(inner, o.dim));
  }
  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& /*context*/) override {
    const std::vector<torch::Tensor> both = project(in_, x).chunk(2, -1);
    torch::Tensor gated = both[0] * torch::gelu(both[1]);
    if (dropout_ > 0) gated = torch::dropout(gated, dropout_, is_training());
    return project(out_, gated);
  }
  torch::Tensor step(const torch::Tensor& x, std::int64_t /*place*/, const NuwaContext& context,
                     NuwaCache& /*cache*/) override {
    return forward(x, context);
  }

 private:
  double dropout_;
  nn::Linear in_{nullptr}, out_{nullptr};
};

}  // namespace

std::shared_ptr<NuwaPartImpl> make_text_attention(const NuwaTransformerOptions& options,
                                                  bool from_video) {
  return std::make_shared<TextAttentionImpl>(options, from_video);
}

std::shared_ptr<NuwaPartImpl> make_nearby_attention(const NuwaTransformerOptions& options,
                                                    std::int64_t layer) {
  const auto place = static_cast<std::size_t>(layer) % options.dilations.size();
  return std::make_shared<NearbyAttentionImpl>(options, options.dilations[place]);
}

std::shared_ptr<NuwaPartImpl> make_feed_forward(const NuwaTransformerOptions& options) {
  return std::make_shared<FeedForwardImpl>(options);
}

}  // namespace millrace
