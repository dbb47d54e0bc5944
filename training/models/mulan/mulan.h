// MuLaN, as musiclm-pytorch 0.2.8 has it: sounds and texts as vectors of one space, in which a
// sound is near the text that describes it. Parameter names, defaults and arithmetic are the
// package's.
//
//   Mulan model(MulanConfig{.audio = {{.dim = 512, .depth = 6}}, .text = {{.dim = 512}}});
//   MulanLatents latents = model->latents(sounds, tokens);   // [batch, samples], [batch, tokens]
//   model->loss(latents).backward();
//   torch::Tensor near = model->audio_latents(sounds).matmul(model->text_latents(tokens).t());
#pragma once

#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/mulan/mulan_config.h>

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

class AudioTransformerImpl;
class TextTransformerImpl;
class ContrastImpl;
class LayerContrastImpl;

// Of length 1 each. The n-th sound and the n-th text belong together.
struct MulanLatents {
  torch::Tensor audio, text;  // [batch, dim_latent]
  // Of the hierarchical loss, [layers, batch, dim_latent]; otherwise undefined.
  torch::Tensor audio_layers{}, text_layers{};
};

// Which rows of a larger batch a model is given, one of several processes with one batch: what is
// drawn by row is drawn for all of them, so that they see what one process would see.
struct BatchShare {
  std::int64_t first = 0, of = 0;  // of: 0: it is the whole batch
};

class MulanImpl : public torch::nn::Module {
 public:
  // Throws an Error of kind usage if the numbers do not fit each other.
  explicit MulanImpl(MulanConfig config);

  // `sounds`: float32 [batch, samples], or spectrograms if `accept_spec`; `tokens`: int64
  // [batch, places], filled up with `pad_id`.
  MulanLatents latents(const torch::Tensor& sounds, const torch::Tensor& tokens,
                       const BatchShare& share = {});
  torch::Tensor audio_latents(const torch::Tensor& sounds);
  torch::Tensor text_latents(const torch::Tensor& tokens);
  // Every sound against every text.
  torch::Tensor loss(const MulanLatents& latents);

  void set_draws(std::shared_ptr<Draws> draws);
  // Python's own order of operations: more work and memory, and infinite for high temperatures, but
  // the same numbers to the last bit, which matters where a loss is all but zero.
  void set_in_order(bool in_order);
  const MulanConfig& config() const { return config_; }

 private:
  MulanConfig config_;
  std::shared_ptr<AudioTransformerImpl> audio_;
  std::shared_ptr<TextTransformerImpl> text_;
  torch::nn::Linear text_to_latents_{nullptr}, audio_to_latents_{nullptr};
  std::shared_ptr<ContrastImpl> contrast_;
  std::shared_ptr<LayerContrastImpl> layers_;  // null without the hierarchical loss
  torch::Tensor text_layers_, audio_layers_;   // which
};
TORCH_MODULE(Mulan);

}  // namespace millrace
