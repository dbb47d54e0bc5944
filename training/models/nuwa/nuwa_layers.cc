#include "nuwa_layers.h"

#include "nuwa_attention.h"

#include <millrace/training/device/torch_api.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

std::shared_ptr<nn::Module> group() {
  return std::make_shared<nn::Module>();
}

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias) {
  return torch::layer_norm(x, {x.size(-1)}, weight, bias);
}

}  // namespace

AxialPositionsImpl::AxialPositionsImpl(std::int64_t dim, const std::array<std::int64_t, 3>& shape) {
  for (std::int64_t length : shape) {
    if (length == 1) continue;
    const std::string name = "axial" + std::to_string(axes_.size() + 1);
    axes_.push_back(register_parameter(name, torch::randn({length, dim})));
  }
}

torch::Tensor AxialPositionsImpl::forward() const {
  torch::Tensor positions;
  for (const torch::Tensor& axis : axes_) {
    positions = positions.defined() ? positions.unsqueeze(-2) + axis : axis;
  }
  return positions.flatten(0, -2);
}

NuwaSandwichImpl::NuwaSandwichImpl(std::int64_t dim, std::shared_ptr<NuwaPartImpl> part,
                                   bool wrapped, std::int64_t side)
    : part_(std::move(part)), side_(side) {
  auto norm = [&](const char* name, torch::Tensor& weight, torch::Tensor& bias) {
    auto registered = register_module(name, nn::LayerNorm(nn::LayerNormOptions({dim})));
    weight = registered->weight;
    bias = registered->bias;
  };
  norm("prenorm", pre_weight_, pre_bias_);
  norm("postnorm", post_weight_, post_bias_);
  if (wrapped) {
    register_module("fn", group())->register_module("fn", part_);
  } else {
    register_module("fn", part_);
  }
}

torch::Tensor NuwaSandwichImpl::forward(const torch::Tensor& x, const NuwaContext& context) {
  torch::Tensor y = layer_norm(x, pre_weight_, pre_bias_);
  if (side_ > 0) y = shifted(y);
  return layer_norm(part_->forward(y, context), post_weight_, post_bias_);
}

torch::Tensor NuwaSandwichImpl::step(const torch::Tensor& x, std::int64_t place,
                                     const NuwaContext& context, NuwaCache& cache) {
  torch::Tensor y = layer_norm(x, pre_weight_, pre_bias_);
  if (side_ > 0) y = shifted_one(y, place, cache);
  return layer_norm(part_->step(y, place, context, cache), post_weight_, post_bias_);
}

torch::Tensor NuwaSandwichImpl::shifted(const torch::Tensor& x) const {
  const std::int64_t tokens = x.size(1) - 1, frame = side_ * side_;
  if (tokens == 0) return x;
  const std::int64_t missing = (frame - tokens % frame) % frame;
  torch::Tensor video = x.narrow(1, 1, tokens);
  if (missing > 0) video = torch::constant_pad_nd(video, {0, 0, 0, missing});
  std::vector<torch::Tensor> chunks = video.unflatten(1, {-1, side_, side_}).chunk(4, -1);
  // The package shifts the first two chunks, even if chunk() returned fewer than four.
  chunks[0] = torch::constant_pad_nd(chunks[0], {0, 0, 0, 0, 1, -1});
  if (chunks.size() > 1) chunks[1] = torch::constant_pad_nd(chunks[1], {0, 0, 1, -1});
  video = torch::cat(chunks, -1).flatten(1, 3);
  if (missing > 0) video = video.narrow(1, 0, tokens);
  return torch::cat({x.narrow(1, 0, 1), video}, 1);
}

torch::Tensor NuwaSandwichImpl::shifted_one(const torch::Tensor& x, std::int64_t place,
                                            NuwaCache& cache) const {
  if (!cache.before_shift.defined()) {
    cache.before_shift = x.new_zeros({x.size(0), cache.longest, x.size(2)});
  }
  cache.before_shift.select(1, place).copy_(x.select(1, 0));
  if (place == 0) return x;
  const std::int64_t token = place - 1;
  const bool above = token / side_ % side_ > 0, left = token % side_ > 0;
  std::vector<torch::Tensor> chunks = x.chunk(4, -1);
  std::int64_t channel = 0;
  for (std::size_t i = 0; i < 2 && i < chunks.size(); ++i) {
    const std::int64_t count = chunks[i].size(-1), back = i == 0 ? side_ : 1;
    chunks[i] = (i == 0 ? above : left)
                    ? cache.before_shift.narrow(1, place - back, 1).narrow(-1, channel, count)
                    : torch::zeros_like(chunks[i]);
    channel += count;
  }
  return torch::cat(chunks, -1);
}

// Plain: x += part(x) for each part. Reversible: two residual streams that start equal; each update
// reads the other stream. The package recomputes activations of reversible layers to save memory;
// the arithmetic is the same. As in the package, reversible layers are registered under two names.
NuwaTransformerImpl::NuwaTransformerImpl(const NuwaTransformerOptions& options)
    : options_(options) {
  auto layers = register_module("layers", group());
  const bool shifts = options.video && options.shift_video_tokens;
  const std::int64_t side = shifts ? options.video_shape[2] : 0;
  std::vector<std::vector<std::shared_ptr<NuwaSandwichImpl>>> all;
  auto sandwich = [&](std::shared_ptr<NuwaPartImpl> part, bool shifted) {
    const bool wrapped = shifted && (options.reversible || shifts);
    return std::make_shared<NuwaSandwichImpl>(options.dim, std::move(part), wrapped,
                                              shifted ? side : 0);
  };
  for (std::int64_t i = 0; i < options.depth; ++i) {
    auto attention =
        options.video ? make_nearby_attention(options, i) : make_text_attention(options, false);
    auto cross =
        options.video && !options.reversible ? make_text_attention(options, true) : nullptr;
    auto feed_forward = make_feed_forward(options);
    all.push_back({sandwich(std::move(attention), true)});
    if (cross) all.back().push_back(sandwich(std::move(cross), false));
    all.back().push_back(sandwich(std::move(feed_forward), true));
    if (!options.video || !options.reversible) continue;
    all.push_back({sandwich(make_text_attention(options, true), false)});
    all.back().push_back(sandwich(make_feed_forward(options), true));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto layer = layers->register_module(std::to_string(i), group());
    for (std::size_t j = 0; j < all[i].size(); ++j) {
      layer->register_module(std::to_string(j), all[i][j]);
      parts_.push_back(all[i][j]);
    }
  }
  if (options.reversible) {
    auto blocks = register_module("net", group())->register_module("blocks", group());
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto block = blocks->register_module(std::to_string(i), group());
      block->register_module("f", group())->register_module("net", all[i][0]);
      block->register_module("g", group())->register_module("net", all[i][1]);
    }
  }
  auto norm = register_module("norm", group())
                  ->register_module("norm", nn::LayerNorm(nn::LayerNormOptions({options.dim})));
  norm_weight_ = norm->weight;
  norm_bias_ = norm->bias;
}

template <class Run>
torch::Tensor NuwaTransformerImpl::through(const torch::Tensor& x, const Run& run) {
  torch::Tensor sum = x;
  if (options_.reversible) {
    torch::Tensor first = x, second = x;
    for (std::size_t i = 0; i < parts_.size(); i += 2) {
      first = first + run(i, second);
      second = second + run(i + 1, first);
    }
    sum = first + second;
  } else {
    for (std::size_t i = 0; i < parts_.size(); ++i) sum = run(i, sum) + sum;
  }
  return layer_norm(sum / sum.amax({-1}, true).detach(), norm_weight_, norm_bias_);
}

torch::Tensor NuwaTransformerImpl::forward(const torch::Tensor& x, const NuwaContext& context) {
  return through(
      x, [&](std::size_t i, const torch::Tensor& y) { return parts_[i]->forward(y, context); });
}

torch::Tensor NuwaTransformerImpl::step(const torch::Tensor& x, std::int64_t place,
                                        const NuwaContext& context,
                                        std::vector<NuwaCache>& caches) {
  if (caches.empty()) {
    const auto& shape = options_.video_shape;
    caches.resize(parts_.size());
    for (NuwaCache& cache : caches) cache.longest = 1 + shape[0] * shape[1] * shape[2];
  }
  return through(x, [&](std::size_t i, const torch::Tensor& y) {
    return parts_[i]->step(y, place, context, caches[i]);
  });
}

}  // namespace millrace
