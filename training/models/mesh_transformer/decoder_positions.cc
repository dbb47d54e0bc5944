#include "decoder_positions.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/video_tokenizer/video_layers.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace millrace {

namespace nn = torch::nn;

namespace {

// ALiBi slopes: powers of 2; if `heads` is not a power of 2, the rest are every other slope of the
// next power of 2.
std::vector<double> slopes_of(std::int64_t heads) {
  auto powers = [](std::int64_t n) {
    const double ratio = std::pow(2, -std::pow(2, -(std::log2(static_cast<double>(n)) - 3)));
    std::vector<double> slopes;
    for (std::int64_t i = 0; i < n; ++i) slopes.push_back(ratio * std::pow(ratio, i));
    return slopes;
  };
  std::int64_t whole = 1;
  while (whole * 2 <= heads) whole *= 2;
  std::vector<double> slopes = powers(whole);
  const std::vector<double> between = powers(whole * 2);
  for (std::size_t i = 0; std::ssize(slopes) < heads; i += 2) slopes.push_back(between[i]);
  return slopes;
}

// T5's buckets of distances: exact for small distances, logarithmic for large ones.
torch::Tensor buckets_of(const torch::Tensor& distance, const DecoderArguments& arguments) {
  const std::int64_t buckets = arguments.rel_pos_num_buckets, exact = buckets / 2;
  const torch::Tensor back = distance.clamp_min(0);
  const double span =
      std::log(static_cast<double>(arguments.rel_pos_max_distance) / static_cast<double>(exact));
  torch::Tensor far =
      (torch::log(back.to(torch::kFloat32) / exact) / span * (buckets - exact)).to(torch::kInt64);
  far = (far + exact).clamp_max(buckets - 1);
  return torch::where(back < exact, back, far);
}

torch::Tensor inverse_frequencies(const DecoderArguments& arguments, std::int64_t dim_head) {
  const std::int64_t dim =
      std::max<std::int64_t>(arguments.rotary_emb_dim.value_or(dim_head / 2), 32);
  const double base = 10000 * std::pow(arguments.rotary_base_rescale_factor,
                                       static_cast<double>(dim) / static_cast<double>(dim - 2));
  const torch::Tensor even = torch::arange(0, dim, 2).to(torch::kFloat32) / dim;
  return 1. / torch::pow(base, even);
}

}  // namespace

torch::Tensor Positions::rotated(const torch::Tensor& x) const {
  if (!cosine.defined()) return x;
  const std::int64_t turning = cosine.size(-1);
  const torch::Tensor part = x.slice(-1, 0, turning);
  const std::vector<torch::Tensor> halves = part.chunk(2, -1);
  const torch::Tensor across = torch::cat({-halves[1], halves[0]}, -1);
  return torch::cat({part * cosine + across * sine, x.slice(-1, turning)}, -1);
}

void DecoderPositions::register_in(nn::Module& decoder) {
  if (arguments_.rotary_pos_emb) {
    rotary_ = decoder.register_module("rotary_pos_emb", std::make_shared<nn::Module>());
    rotary_->register_buffer("inv_freq", inverse_frequencies(arguments_, dim_head_));
  }
  if (arguments_.rel_pos_bias) {
    const nn::Embedding bias(arguments_.rel_pos_num_buckets, heads_);
    decoder.register_module("rel_pos", named({{"relative_attention_bias", bias.ptr()}}));
    relative_bias_ = bias->weight;  // shares the parameter
  } else if (arguments_.alibi_pos_bias) {
    const std::vector<double> slopes = slopes_of(arguments_.alibi_num_heads.value_or(heads_));
    slopes_ = torch::tensor(slopes).to(torch::kFloat32);
    slopes_ = torch::pad(slopes_, {0, heads_ - slopes_.size(0)}).view({-1, 1, 1});
  }
}

Positions DecoderPositions::of(std::int64_t queries, std::int64_t before,
                               const torch::Device& device) const {
  Positions where;
  if (rotary_) {
    const torch::Tensor frequencies = rotary_->named_buffers()["inv_freq"];
    const torch::Tensor at = torch::arange(before, before + queries, torch::device(device));
    const torch::Tensor angles = torch::outer(at.to(frequencies.scalar_type()), frequencies) /
                                 arguments_.rotary_interpolation_factor;
    const torch::Tensor twice = torch::cat({angles, angles}, -1);
    where.cosine = twice.cos();
    where.sine = twice.sin();
  }
  if (!slopes_.defined() && !relative_bias_.defined()) return where;
  const torch::Tensor keys = torch::arange(before + queries, torch::device(device));
  const torch::Tensor distance = keys.slice(0, before).unsqueeze(1) - keys.unsqueeze(0);
  if (slopes_.defined()) {
    where.bias = -distance.abs() * slopes_.to(device);
  } else {
    const double scale = std::sqrt(static_cast<double>(dim_head_));
    where.bias =
        torch::embedding(relative_bias_, buckets_of(distance, arguments_)).permute({2, 0, 1}) *
        scale;
  }
  return where;
}

}  // namespace millrace
