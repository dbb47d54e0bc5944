#include "video_attention.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/ops/gate_loop.h>
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

struct AttentionOptions {
  std::int64_t dim = 0, dim_head = 0, heads = 0;
  double dropout = 0;
  bool over_time = false;  // true: causal attention over time; false: attention over space
  std::int64_t cond = 0;
};

// Attention over the pixels of each frame, or over the frames of each pixel. A few learned keys and
// values come first; every query attends to them.
class Attention : public VideoLayer {
 public:
  explicit Attention(const AttentionOptions& options)
      : options_(options),
        norm_(std::make_shared<RmsNorm>(options.dim, 0, options.cond)),
        to_qkv_(linear(options.dim, options.dim_head * options.heads * 3)),
        memory_(torch::randn({2, options.heads, 4, options.dim_head})),
        to_out_(linear(options.dim_head * options.heads, options.dim)) {
    register_parameter("mem_kv", memory_);
    register_module("norm", norm_);
    register_module("to_qkv", named({{"0", to_qkv_.ptr()}}));
    register_module("to_out", named({{"1", to_out_.ptr()}}));
  }

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override {
    // [sequences, length, channels]
    const torch::Tensor channels_last_x =
        options_.over_time ? x.permute({0, 3, 4, 2, 1}) : x.permute({0, 2, 3, 4, 1});
    const torch::Tensor sequences =
        packed(options_.over_time ? channels_last_x.flatten(0, 2)
                                  : channels_last_x.flatten(0, 1).flatten(1, 2));
    const torch::Tensor y =
        attend(norm_->forward(sequences, cond)).reshape(channels_last_x.sizes());
    return options_.over_time ? y.permute({0, 4, 3, 1, 2}) : y.permute({0, 4, 1, 2, 3});
  }

 private:
  torch::Tensor attend(const torch::Tensor& x) {
    const std::vector<torch::Tensor> qkv = to_qkv_->forward(x)
                                               .unflatten(-1, {3, options_.heads, -1})
                                               .permute({2, 0, 3, 1, 4})
                                               .unbind(0);
    auto with_memory = [&](std::int64_t which, const torch::Tensor& t) {
      return torch::cat({memory_[which].unsqueeze(0).expand({t.size(0), -1, -1, -1}), t}, -2);
    };
    const torch::Tensor k = with_memory(0, qkv[1]), v = with_memory(1, qkv[2]);
    const double scale = 1 / std::sqrt(static_cast<double>(options_.dim_head));
    torch::Tensor dots = torch::einsum("bhid,bhjd->bhij", {qkv[0], k}) * scale;
    const std::int64_t rows = dots.size(-2), columns = dots.size(-1);
    if (options_.over_time && rows > 1) {
      const torch::Tensor later =
          torch::ones({rows, columns}, dots.options().dtype(torch::kBool)).triu(columns - rows + 1);
      dots = dots.masked_fill(later, -std::numeric_limits<float>::max());
    }
    torch::Tensor weights = dots.softmax(-1);
    if (options_.dropout > 0) weights = torch::dropout(weights, options_.dropout, is_training());
    const torch::Tensor out = torch::einsum("bhij,bhjd->bhid", {weights, v});
    return to_out_->forward(out.transpose(1, 2).flatten(2));
  }

  AttentionOptions options_;
  std::shared_ptr<RmsNorm> norm_;
  nn::Linear to_qkv_;
  torch::Tensor memory_;
  nn::Linear to_out_;
};

// Token shift: the second half of the channels comes from the frame before.
torch::Tensor shift_half(const torch::Tensor& x) {
  const std::vector<torch::Tensor> halves = x.chunk(2, 1);
  return torch::cat({halves[0], torch::pad(halves[1], {0, 0, 0, 0, 1, -1})}, 1);
}

// An attention layer and a feed-forward layer, each with a residual connection.
class Attend : public VideoLayer {
 public:
  Attend(VideoLayerPointer attention, VideoLayerPointer feed_forward, bool shift)
      : attention_(std::move(attention)), feed_forward_(std::move(feed_forward)), shift_(shift) {
    register_part("0", attention_);
    register_part("1", feed_forward_);
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override {
    torch::Tensor y = attention_->forward(shift_ ? shift_half(x) : x, cond) + x;
    return feed_forward_->forward(shift_ ? shift_half(y) : y, cond) + y;
  }

 private:
  void register_part(const std::string& name, const VideoLayerPointer& part) {
    const ModulePointer inner = shift_ ? named({{"fn", part}}) : part;
    register_module(name, named({{"fn", inner}}));
  }

  VideoLayerPointer attention_, feed_forward_;
  bool shift_;
};

// Gated linear recurrence over the frames of each pixel: h = sigmoid(a) * h + kv, out = q * h.
class GateLoop : public VideoLayer {
 public:
  GateLoop(std::int64_t dim, bool compat)
      : norm_(std::make_shared<RmsNorm>(dim, 0)),
        to_qkva_(linear(dim, dim * 3)),
        order_(compat ? GateLoopOrder::pairs : GateLoopOrder::one_by_one) {
    const ModulePointer loop =
        named({{"norm", norm_}, {"to_qkva", named({{"0", to_qkva_.ptr()}})}});
    register_module("fn", named({{"fn", loop}}));
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& cond) override {
    const torch::Tensor channels_last_x = x.permute({0, 3, 4, 2, 1});
    const torch::Tensor sequences = packed(channels_last_x.flatten(0, 2));
    const torch::Tensor qkva = to_qkva_->forward(norm_->forward(sequences, cond));
    const torch::Tensor y = gate_loop(qkva, order_) + sequences;
    return y.reshape(channels_last_x.sizes()).permute({0, 4, 3, 1, 2});
  }

 private:
  std::shared_ptr<RmsNorm> norm_;
  nn::Linear to_qkva_;
  GateLoopOrder order_;
};

}  // namespace

RmsNorm::RmsNorm(std::int64_t dim, std::int64_t trailing, std::int64_t cond)
    : scale_(std::sqrt(static_cast<double>(dim))), trailing_(trailing) {
  if (cond > 0) {
    to_gamma_ = register_module("to_gamma", nn::Linear(cond, dim));
    nn::init::zeros_(to_gamma_->weight);
    nn::init::ones_(to_gamma_->bias);
    return;
  }
  std::vector<std::int64_t> shape{dim};
  shape.resize(static_cast<std::size_t>(1 + trailing), 1);
  gamma_ = register_parameter("gamma", torch::ones(shape));
}

torch::Tensor RmsNorm::forward(const torch::Tensor& x, const torch::Tensor& cond) {
  const bool channels_last = trailing_ == 0;
  torch::Tensor gamma = gamma_;
  if (to_gamma_) {
    gamma = project(to_gamma_, cond);
    if (channels_last) {
      gamma = gamma.repeat_interleave(x.size(0) / cond.size(0), 0).unsqueeze(1);
    } else {
      std::vector<std::int64_t> shape = gamma.sizes().vec();
      shape.resize(static_cast<std::size_t>(x.dim()), 1);
      gamma = gamma.reshape(shape);
    }
  }
  const auto over = F::NormalizeFuncOptions().dim(channels_last ? -1 : 1);
  return F::normalize(x, over) * scale_ * gamma;
}

LinearSpaceAttention::LinearSpaceAttention(std::int64_t dim, std::int64_t dim_head,
                                           std::int64_t heads, std::int64_t cond)
    : dim_head_(dim_head),
      heads_(heads),
      norm_(register_module("norm", std::make_shared<RmsNorm>(dim, 0, cond))),
      to_q_(linear(dim, dim_head * heads)),
      to_kv_(linear(dim, dim_head * heads * 2)),
      to_out_(linear(dim_head * heads, dim)) {
  register_module("attn", named({{"to_q", named({{"0", to_q_.ptr()}})},
                                 {"to_kv", named({{"0", to_kv_.ptr()}})},
                                 {"to_out", named({{"0", to_out_.ptr()}})}}));
}

torch::Tensor LinearSpaceAttention::forward(const torch::Tensor& x, const torch::Tensor& cond) {
  const torch::Tensor channels_last_x = x.movedim(1, -1);
  // cat() always copies, as in the package: the memory layout decides how the sums of the gradient
  // penalty round.
  torch::Tensor y =
      torch::cat({channels_last_x.reshape({-1, x.size(-2) * x.size(-1), x.size(1)})}, 0);
  y = norm_->forward(y, cond);
  const double scale = 1 / std::sqrt(static_cast<double>(dim_head_));
  torch::Tensor q = to_q_->forward(y).unflatten(-1, {heads_, -1}).transpose(1, 2);
  const std::vector<torch::Tensor> kv =
      to_kv_->forward(y).unflatten(-1, {2, heads_, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
  q = taylor_series(q * scale);
  const torch::Tensor k = taylor_series(kv[0]);
  // The gradients of queries and keys nearly cancel, so a different order of these sums changes
  // their fourth digit.
  const torch::Tensor products = torch::einsum("bhnd,bhne->bhde", {k, kv[1]});
  const torch::Tensor sums = torch::einsum("bhnd,bhmd->bhn", {q, k}).clamp_min(1e-5);
  const torch::Tensor out = torch::einsum("bhnd,bhde,bhn->bhne", {q, products, sums.reciprocal()});
  return to_out_->forward(out.transpose(1, 2).flatten(2))
      .reshape(channels_last_x.sizes())
      .movedim(-1, 1);
}

VideoFeedForward::VideoFeedForward(std::int64_t dim, double mult, bool pictures, std::int64_t cond)
    : norm_(register_module("norm", std::make_shared<RmsNorm>(dim, pictures ? 2 : 3, cond))) {
  const auto inner = static_cast<std::int64_t>(static_cast<double>(dim) * mult * 2 / 3);
  if (pictures) {
    in2d_ = nn::Conv2d(nn::Conv2dOptions(dim, inner * 2, 1));
    out2d_ = nn::Conv2d(nn::Conv2dOptions(inner, dim, 1));
    register_module("net", named({{"0", in2d_.ptr()}, {"2", out2d_.ptr()}}));
  } else {
    in3d_ = nn::Conv3d(nn::Conv3dOptions(dim, inner * 2, 1));
    out3d_ = nn::Conv3d(nn::Conv3dOptions(inner, dim, 1));
    register_module("net", named({{"0", in3d_.ptr()}, {"2", out3d_.ptr()}}));
  }
}

torch::Tensor VideoFeedForward::forward(const torch::Tensor& x, const torch::Tensor& cond) {
  const torch::Tensor y = norm_->forward(x, cond);
  const std::vector<torch::Tensor> halves =
      (in2d_ ? in2d_->forward(y) : in3d_->forward(y)).chunk(2, 1);
  const torch::Tensor gated = torch::gelu(halves[1]) * halves[0];
  return out2d_ ? out2d_->forward(gated) : out3d_->forward(gated);
}

VideoLayerPointer make_attention_layer(const VideoTokenizerConfig& config, const std::string& type,
                                       std::int64_t dim) {
  if (type == "gateloop_time") return std::make_shared<GateLoop>(dim, config.compat);
  // The package cannot run the conditional attention types: it builds them with the size of the
  // unexpanded condition and never passes the condition. Here they get the same condition as
  // cond_residual.
  const bool conditional = type.starts_with("cond_");
  const std::int64_t cond = conditional ? config.expanded_cond() : 0;
  auto feed_forward = [&](std::int64_t its_cond) {
    return std::make_shared<VideoFeedForward>(dim, 4, /*pictures=*/false, its_cond);
  };
  if (type.ends_with("linear_attend_space")) {
    const auto attention = std::make_shared<LinearSpaceAttention>(dim, config.linear_attn_dim_head,
                                                                  config.linear_attn_heads, cond);
    return std::make_shared<Attend>(attention, feed_forward(cond), false);
  }
  const bool over_time = type.ends_with("attend_time");
  if (!over_time && !type.ends_with("attend_space")) {
    throw Error("unknown layer type " + type).kind(ErrorKind::usage);
  }
  const auto attention =
      std::make_shared<Attention>(AttentionOptions{.dim = dim,
                                                   .dim_head = config.attn_dim_head,
                                                   .heads = config.attn_heads,
                                                   .dropout = config.attn_dropout,
                                                   .over_time = over_time,
                                                   .cond = cond});
  return std::make_shared<Attend>(attention, feed_forward(over_time ? cond : 0), over_time);
}

}  // namespace millrace
