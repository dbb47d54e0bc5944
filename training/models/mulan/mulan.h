// MuLaN, equal to musiclm-pytorch 0.2.8: embeds audio and text in one latent space, where a clip is
// close to the text that describes it. Parameter names, defaults and arithmetic are the package's.
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

// Unit vectors. Row n of audio and row n of text are a pair.
struct MulanLatents {
  torch::Tensor audio, text;  // [batch, dim_latent]
  // For the hierarchical loss, [layers, batch, dim_latent]; otherwise undefined.
  torch::Tensor audio_layers{}, text_layers{};
};

// The position of this process's rows in a batch that several processes share. Random numbers are
// drawn for the whole batch, so that each row gets the same ones as in a single process.
struct BatchShare {
  std::int64_t first = 0, of = 0;  // of: rows of the whole batch; 0: this process has all rows
};

class MulanImpl : public torch::nn::Module {
 public:
  // Throws an Error of kind usage if the options are inconsistent.
  explicit MulanImpl(MulanConfig config);

  // `sounds`: float32 [batch, samples], or spectrograms if `accept_spec`. `tokens`: int64 [batch,
  // length], padded with `pad_id`.
  MulanLatents latents(const torch::Tensor& sounds, const torch::Tensor& tokens,
                       const BatchShare& share = {});
  torch::Tensor audio_latents(const torch::Tensor& sounds);
  torch::Tensor text_latents(const torch::Tensor& tokens);
  // Contrastive loss of all pairs.
  torch::Tensor loss(const MulanLatents& latents);

  void set_draws(std::shared_ptr<Draws> draws);
  // Reference path: operations in the order of the Python package. Needs more time and memory and
  // is infinite for high temperatures, but results are bit-exact. This matters for losses close to
  // zero.
  void set_reference(bool reference);
  const MulanConfig& config() const { return config_; }

 private:
  MulanConfig config_;
  std::shared_ptr<AudioTransformerImpl> audio_;
  std::shared_ptr<TextTransformerImpl> text_;
  torch::nn::Linear text_to_latents_{nullptr}, audio_to_latents_{nullptr};
  std::shared_ptr<ContrastImpl> contrast_;
  std::shared_ptr<LayerContrastImpl> layers_;  // null without the hierarchical loss
  torch::Tensor text_layers_, audio_layers_;   // indices of the contrasted layers
};
TORCH_MODULE(Mulan);

}  // namespace millrace
