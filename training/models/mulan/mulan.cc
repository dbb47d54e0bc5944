#include "mulan_encoders.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mulan/mulan.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <cmath>
#include <limits>

namespace millrace {

namespace {

constexpr double first_temperature = 10, first_bias = -10;

// Indices of `layers` out of `depth` layers, evenly spaced.
torch::Tensor spread(std::int64_t layers, std::int64_t depth) {
  const double step = static_cast<double>(depth) / static_cast<double>(layers);
  return (torch::arange(layers) * step).floor().to(torch::kInt64);
}

std::vector<torch::Tensor> chosen(const std::vector<torch::Tensor>& layers,
                                  const torch::Tensor& which) {
  std::vector<torch::Tensor> found;
  for (std::int64_t i = 0; i < which.size(0); ++i) {
    found.push_back(layers[static_cast<std::size_t>(which[i].item<std::int64_t>())]);
  }
  return found;
}

}  // namespace

// Contrastive loss of latents [layers, batch, dim]: softmax over the batch, or sigmoid per pair.
class ContrastImpl : public torch::nn::Module {
 public:
  ContrastImpl(std::int64_t layers, bool sigmoid, bool decoupled)
      : sigmoid_(sigmoid), decoupled_(decoupled) {
    temperatures_ = register_parameter("temperatures",
                                       torch::full({layers, 1, 1}, std::log(first_temperature)));
    if (sigmoid) bias_ = register_parameter("bias", torch::full({layers, 1, 1}, first_bias));
  }

  torch::Tensor forward(const torch::Tensor& audio, const torch::Tensor& text) {
    const torch::Tensor similarity =
        torch::matmul(audio, text.transpose(-1, -2)) * temperatures_.exp();
    if (sigmoid_) return by_pairs(similarity);
    return reference_ ? by_softmax_reference(similarity) : by_softmax(similarity);
  }
  void set_reference(bool reference) { reference_ = reference; }

 private:
  torch::Tensor by_pairs(const torch::Tensor& similarity) const {
    const std::int64_t n = similarity.size(-1);
    const torch::Tensor labels = 2 * torch::eye(n, similarity.options()) - 1;
    return -torch::log_sigmoid(labels * (similarity + bias_)).sum() / n;
  }
  // log(sum(exp)) in one function: the package's separate exp and log overflow at high
  // temperatures.
  torch::Tensor by_softmax(const torch::Tensor& similarity) const {
    const torch::Tensor pairs = similarity.diagonal(0, -2, -1);
    torch::Tensor others = similarity;
    if (decoupled_) {
      const torch::Tensor same =
          torch::eye(similarity.size(-1), similarity.options().dtype(torch::kBool));
      others = similarity.masked_fill(same, -std::numeric_limits<float>::infinity());
    }
    const torch::Tensor loss = 0.5 * (others.logsumexp(-1) + others.logsumexp(-2)) - pairs;
    return loss.mean(-1).sum();
  }

  torch::Tensor by_softmax_reference(const torch::Tensor& similarity) const {
    const torch::Tensor same =
        torch::eye(similarity.size(-1), similarity.options().dtype(torch::kBool));
    torch::Tensor e = similarity.exp();
    const torch::Tensor pairs = e.masked_select(same).unflatten(0, {-1, similarity.size(-1)});
    if (decoupled_) e = e.masked_fill(same, 0);
    auto log = [](const torch::Tensor& t) { return t.clamp_min(1e-20).log(); };
    const torch::Tensor of_audio = log(e.sum(-1)), of_text = log(e.sum(-2));
    return (-log(pairs) + 0.5 * (of_audio + of_text)).mean(-1).sum();
  }

  bool sigmoid_, decoupled_, reference_ = false;
  torch::Tensor temperatures_, bias_;
};

// Projects the outputs of intermediate layers to latents, for the hierarchical loss.
class LayerContrastImpl : public torch::nn::Module {
 public:
  explicit LayerContrastImpl(const MulanConfig& config) {
    const std::int64_t layers = config.contrasted_layers();
    auto add = [&](const std::string& name, std::int64_t dim, Projection& projection) {
      projection.gain = register_parameter(name + "_gamma", torch::ones({layers, 1, dim}));
      projection.weight = register_parameter(name + "_latent_weight",
                                             torch::randn({layers, dim, config.dim_latent}));
      projection.bias =
          register_parameter(name + "_latent_bias", torch::randn({layers, 1, config.dim_latent}));
    };
    add("audio", config.audio.dim, audio_);
    add("text", config.text.dim, text_);
    contrast = register_module(
        "contrast", std::make_shared<ContrastImpl>(layers, config.sigmoid_contrastive_loss,
                                                   config.decoupled_contrastive_learning));
  }

  // `layers`: outputs of the chosen layers, [batch, positions, dim] each.
  torch::Tensor audio_latents(const std::vector<torch::Tensor>& layers) const {
    std::vector<torch::Tensor> means;
    for (const torch::Tensor& layer : layers) means.push_back(layer.mean(1));
    return audio_.of(torch::stack(means));
  }
  torch::Tensor text_latents(const std::vector<torch::Tensor>& layers) const {
    std::vector<torch::Tensor> first;
    for (const torch::Tensor& layer : layers) first.push_back(layer.select(1, 0));
    return text_.of(torch::stack(first));
  }

  std::shared_ptr<ContrastImpl> contrast;

 private:
  struct Projection {
    torch::Tensor gain, weight, bias;

    torch::Tensor of(const torch::Tensor& embeds) const {
      const torch::Tensor normed = torch::layer_norm(embeds, {embeds.size(-1)}) * gain;
      return unit_length(torch::matmul(normed, weight) + bias);
    }
  };
  Projection audio_, text_;
};

MulanImpl::MulanImpl(MulanConfig config) : config_(std::move(config)) {
  config_.check();
  const std::int64_t layers = config_.contrasted_layers();
  if (layers > 0) {
    text_layers_ = register_buffer("text_layers_indices", spread(layers, config_.text.depth));
    audio_layers_ = register_buffer("audio_layers_indices", spread(layers, config_.audio.depth));
  }
  audio_ = register_module(
      "audio", std::make_shared<AudioTransformerImpl>(config_.audio, config_.spec_augment));
  text_ = register_module("text", std::make_shared<TextTransformerImpl>(config_.text));
  text_to_latents_ =
      register_module("text_to_latents", torch::nn::Linear(config_.text.dim, config_.dim_latent));
  audio_to_latents_ =
      register_module("audio_to_latents", torch::nn::Linear(config_.audio.dim, config_.dim_latent));
  contrast_ = register_module(
      "contrast", std::make_shared<ContrastImpl>(1, config_.sigmoid_contrastive_loss,
                                                 config_.decoupled_contrastive_learning));
  if (layers > 0) {
    layers_ = register_module("multi_layer_contrastive_learning",
                              std::make_shared<LayerContrastImpl>(config_));
  }
}

void MulanImpl::set_draws(std::shared_ptr<Draws> draws) {
  audio_->set_draws(std::move(draws));
}

void MulanImpl::set_reference(bool reference) {
  audio_->set_reference(reference);
  text_->set_reference(reference);
  contrast_->set_reference(reference);
  if (layers_) layers_->contrast->set_reference(reference);
}

MulanLatents MulanImpl::latents(const torch::Tensor& sounds, const torch::Tensor& tokens,
                                const BatchShare& share) {
  const bool with_layers = layers_ != nullptr;
  const Encoded audio = audio_->forward(sounds, share, with_layers);
  const Encoded text = text_->forward(tokens, with_layers);
  MulanLatents latents{.audio = unit_length(project(audio_to_latents_, audio.whole)),
                       .text = unit_length(project(text_to_latents_, text.whole))};
  if (with_layers) {
    latents.audio_layers = layers_->audio_latents(chosen(audio.layers, audio_layers_));
    latents.text_layers = layers_->text_latents(chosen(text.layers, text_layers_));
  }
  return latents;
}

torch::Tensor MulanImpl::audio_latents(const torch::Tensor& sounds) {
  return unit_length(project(audio_to_latents_, audio_->forward(sounds, {}, false).whole));
}

torch::Tensor MulanImpl::text_latents(const torch::Tensor& tokens) {
  return unit_length(project(text_to_latents_, text_->forward(tokens, false).whole));
}

torch::Tensor MulanImpl::loss(const MulanLatents& latents) {
  const torch::Tensor loss =
      contrast_->forward(latents.audio.unsqueeze(0), latents.text.unsqueeze(0));
  if (!layers_) return loss;
  return loss + layers_->contrast->forward(latents.audio_layers, latents.text_layers);
}

}  // namespace millrace
