#include "mulan_encoders.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/models/ops/bias_table.h>

#include <algorithm>
#include <cmath>

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {

namespace {

[[noreturn]] void refuse_encoder(const std::string& why) {
  throw Error(why).kind(ErrorKind::usage);
}

// Sines and cosines of the places of a grid, [rows, columns, dim].
torch::Tensor grid_positions(std::int64_t rows, std::int64_t columns, std::int64_t dim,
                             const torch::TensorOptions& options) {
  constexpr double temperature = 10'000;
  const torch::Tensor steps = torch::arange(dim / 4, options) / (dim / 4 - 1);
  const torch::Tensor rates = 1.0 / torch::pow(temperature, steps);
  const torch::Tensor y = torch::arange(rows, options).unsqueeze(-1) * rates;
  const torch::Tensor x = torch::arange(columns, options).unsqueeze(-1) * rates;
  auto over_rows = [&](const torch::Tensor& t) { return t.unsqueeze(0).expand({rows, -1, -1}); };
  auto over_columns = [&](const torch::Tensor& t) {
    return t.unsqueeze(1).expand({-1, columns, -1});
  };
  return torch::cat(
      {over_rows(x.sin()), over_rows(x.cos()), over_columns(y.sin()), over_columns(y.cos())}, -1);
}

// Holds what is at place `number` of a Sequential in Python, where the others have no parameters.
void add_at(torch::nn::Sequential& parts, const char* number, torch::nn::AnyModule module) {
  parts->push_back(number, std::move(module));
}

// The module of the package that is to stretch time: its rate is taken to be 1, so that it never
// does, but its buffer is in every state.
class UnusedStretchImpl : public torch::nn::Module {
 public:
  explicit UnusedStretchImpl(double hop) {
    register_buffer("phase_advance", torch::linspace(0, M_PI * hop, 201).unsqueeze(-1));
  }
};

class AugmentationImpl : public torch::nn::Module {
 public:
  explicit AugmentationImpl(double hop) {
    register_module("0", std::make_shared<UnusedStretchImpl>(hop));
  }
};

}  // namespace

AudioTransformerImpl::AudioTransformerImpl(const MulanAudioConfig& config, bool augment)
    : config_(config), augment_(augment) {
  const std::int64_t pixels = config.patch_size[0] * config.patch_size[1], dim = config.dim;
  embed_ = register_module("to_patch_tokens", torch::nn::Sequential());
  using torch::nn::AnyModule, torch::nn::LayerNorm, torch::nn::LayerNormOptions, torch::nn::Linear;
  add_at(embed_, "1", AnyModule(LayerNorm(LayerNormOptions({pixels}))));
  add_at(embed_, "2", AnyModule(Linear(pixels, dim)));
  add_at(embed_, "3", AnyModule(LayerNorm(LayerNormOptions({dim}))));
  spectrogram_ =
      register_module("spec", Spectrogram(SpectrogramOptions{.n_fft = config.spec_n_fft,
                                                             .win_length = config.spec_win_length,
                                                             .hop_length = config.hop_length(),
                                                             .power = config.spec_power,
                                                             .pad = config.spec_pad,
                                                             .center = config.spec_center,
                                                             .pad_mode = config.spec_pad_mode}));
  register_module("aug", std::make_shared<AugmentationImpl>(config.spec_aug_stretch_factor));
  transformer_ = register_module("transformer", MulanTransformer(config));
  norm_ = register_module("norm", GainNorm(dim));
  const std::int64_t hidden = dim / 4;
  bias_mlp_ = register_module("dynamic_pos_bias_mlp", torch::nn::Sequential());
  add_at(bias_mlp_, "0", AnyModule(Linear(2, hidden)));
  add_at(bias_mlp_, "1", AnyModule(torch::nn::SiLU()));
  add_at(bias_mlp_, "2", AnyModule(Linear(hidden, hidden)));
  add_at(bias_mlp_, "3", AnyModule(torch::nn::SiLU()));
  add_at(bias_mlp_, "4", AnyModule(Linear(hidden, config.heads)));
}

torch::Tensor AudioTransformerImpl::spectrograms(const torch::Tensor& sounds) {
  torch::Tensor x = sounds;
  if (x.dim() != (config_.accept_spec ? 3 : 2)) {
    refuse_encoder(
        c10::str("MuLaN takes ",
                 config_.accept_spec ? "spectrograms of 3 axes" : "sounds as [batch, samples]",
                 ", but got ", x.sizes()));
  }
  if (config_.accept_spec) {
    if (config_.accept_spec_time_first) x = x.transpose(1, 2);
  } else {
    if (x.size(1) < config_.fewest_samples()) {
      refuse_encoder(c10::str("a sound of ", x.size(1),
                              " samples gives no patch; MuLaN needs at least ",
                              config_.fewest_samples()));
    }
    x = spectrogram_->forward(x);
  }
  if (is_training() && augment_) {
    x = mask_band(x, config_.spec_aug_freq_mask, -2, *draws_);
    x = mask_band(x, config_.spec_aug_time_mask, -1, *draws_);
  }
  return x;
}

torch::Tensor AudioTransformerImpl::draw_patches(std::int64_t batch, std::int64_t patches,
                                                 const BatchShare& share) {
  if (!is_training() || config_.patch_dropout_prob <= 0) return {};
  const auto kept = std::max<std::int64_t>(
      1,
      static_cast<std::int64_t>(static_cast<double>(patches) * (1 - config_.patch_dropout_prob)));
  torch::Tensor noise = draws_->normal({share.of > 0 ? share.of : batch, patches});
  if (share.of > 0) noise = noise.narrow(0, share.first, batch);
  return std::get<1>(noise.topk(kept, -1));
}

// There are few distances, but many pairs of patches: the network runs once for each distance.
torch::Tensor AudioTransformerImpl::position_bias(std::int64_t rows, std::int64_t columns,
                                                  const torch::Tensor& kept) {
  const torch::Tensor weight = bias_mlp_[0]->as<torch::nn::Linear>()->weight;
  const auto number = torch::TensorOptions().device(weight.device()).dtype(weight.dtype());
  const std::int64_t wide = 2 * columns - 1;
  const torch::Tensor distances =
      torch::stack(torch::meshgrid({torch::arange(1 - rows, rows, number),
                                    torch::arange(1 - columns, columns, number)},
                                   "ij"),
                   -1)
          .flatten(0, 1);
  const torch::Tensor table = bias_mlp_->forward(distances);  // [distances, heads]
  const torch::Tensor places =
      kept.defined() ? kept : torch::arange(rows * columns, number.dtype(torch::kLong));
  const torch::Tensor code = places.div(columns, "floor") * wide + places.remainder(columns);
  const torch::Tensor which =
      code.unsqueeze(-1) - code.unsqueeze(-2) + ((rows - 1) * wide + columns - 1);
  return look_up_bias(table, kept.defined() ? which : which.unsqueeze(0));
}

torch::Tensor AudioTransformerImpl::position_bias_in_order(std::int64_t rows, std::int64_t columns,
                                                           const torch::Tensor& kept) {
  const torch::Tensor weight = bias_mlp_[0]->as<torch::nn::Linear>()->weight;
  const auto whole = torch::TensorOptions().device(weight.device()).dtype(torch::kInt64);
  torch::Tensor places =
      torch::stack(
          torch::meshgrid({torch::arange(rows, whole), torch::arange(columns, whole)}, "ij"), -1)
          .flatten(0, 1);
  if (kept.defined()) places = places.index({kept});
  torch::Tensor x = (places.unsqueeze(-2) - places.unsqueeze(-3)).to(weight.dtype());
  for (std::size_t layer : {0, 2, 4}) {
    const auto& linear = *bias_mlp_[layer]->as<torch::nn::Linear>();
    if (layer > 0) x = torch::silu(x);
    x = torch::linear(x, linear.weight, linear.bias);
  }
  return x.movedim(-1, -3);
}

torch::Tensor AudioTransformerImpl::embedded(const torch::Tensor& patches,
                                             const torch::Tensor& positions) {
  if (!in_order_) return embed_->forward(patches) + positions;
  auto& linear = *embed_[1]->as<torch::nn::Linear>();
  const torch::Tensor normed = embed_[0]->as<torch::nn::LayerNorm>()->forward(patches);
  return embed_[2]->as<torch::nn::LayerNorm>()->forward(
             torch::linear(normed, linear.weight, linear.bias)) +
         positions;
}

Encoded AudioTransformerImpl::forward(const torch::Tensor& sounds, const BatchShare& share,
                                      bool with_layers) {
  torch::Tensor x = spectrograms(sounds);
  const auto [high, wide] = config_.patch_size;
  const std::int64_t rows = x.size(-2) / high, columns = x.size(-1) / wide;
  if (rows == 0 || columns == 0) {
    refuse_encoder(c10::str("spectrograms of ", x.size(-2), " by ", x.size(-1),
                            " are smaller than a patch ", "of ", high, " by ", wide));
  }
  const bool cropped = x.size(-2) % high != 0 || x.size(-1) % wide != 0;
  if (cropped && !told_cropped_.exchange(true)) {
    log(LogLevel::info, c10::str("spectrograms of ", x.size(-2), " by ", x.size(-1), " are cut to ",
                                 rows * high, " by ", columns * wide, ", whole patches"));
  }
  x = x.narrow(-2, 0, rows * high).narrow(-1, 0, columns * wide);
  // [batch, patches, values of a patch]
  x = x.reshape({-1, rows, high, columns, wide}).permute({0, 1, 3, 2, 4}).flatten(3).flatten(1, 2);
  torch::Tensor positions = grid_positions(rows, columns, config_.dim, x.options()).flatten(0, 1);
  torch::Tensor kept = draw_patches(x.size(0), x.size(1), share);
  if (kept.defined()) kept = kept.to(x.device());
  if (kept.defined() && !in_order_) {  // before they are embedded: what is dropped need not be
    x = x.gather(1, kept.unsqueeze(-1).expand({-1, -1, x.size(2)}));
    positions = positions.index({kept});
  }
  x = embedded(x, positions);
  if (kept.defined() && in_order_) {
    x = x.index({torch::arange(x.size(0), kept.options()).unsqueeze(-1), kept});
  }
  Encoded result;
  const torch::Tensor bias =
      in_order_ ? position_bias_in_order(rows, columns, kept) : position_bias(rows, columns, kept);
  x = transformer_->forward(x, {.bias = bias, .in_order = in_order_},
                            with_layers ? &result.layers : nullptr);
  result.whole = norm_->forward(x.mean(1));
  return result;
}

TextTransformerImpl::TextTransformerImpl(const MulanTextConfig& config) : config_(config) {
  cls_token_ = register_parameter("cls_token", torch::randn(config.dim));
  token_emb_ = register_module("token_emb", torch::nn::Embedding(config.num_tokens, config.dim));
  pos_emb_ = register_module("pos_emb", torch::nn::Embedding(config.max_seq_len, config.dim));
  transformer_ = register_module("transformer", MulanTransformer(config));
  norm_ = register_module("norm", GainNorm(config.dim));
}

Encoded TextTransformerImpl::forward(const torch::Tensor& tokens, bool with_layers) {
  const std::int64_t batch = tokens.size(0), places = tokens.size(1);
  if (places > config_.max_seq_len) {
    refuse_encoder(c10::str("a text has ", places, " tokens, more than max_seq_len (",
                            config_.max_seq_len, ")"));
  }
  torch::Tensor seen = tokens != config_.pad_id;
  torch::Tensor x = token_emb_->forward(tokens) + pos_emb_->weight.narrow(0, 0, places);
  x = torch::cat({cls_token_.expand({batch, 1, -1}), x}, 1);
  seen = torch::constant_pad_nd(seen, {1, 0}, true);
  Encoded result;
  x = transformer_->forward(x, {.seen = seen, .in_order = in_order_},
                            with_layers ? &result.layers : nullptr);
  result.whole = norm_->forward(x.select(1, 0));
  return result;
}

}  // namespace millrace
