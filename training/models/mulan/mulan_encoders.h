// MuLaN's audio and text encoders. Private to training/models.
#pragma once

#include "mulan_layers.h"

#include <millrace/training/models/mulan/mulan.h>
#include <millrace/training/models/mulan/spectrogram.h>

#include <atomic>
#include <memory>
#include <vector>

#include <torch/nn/modules/embedding.h>

namespace millrace {

struct Encoded {
  torch::Tensor whole;                  // [batch, dim]
  std::vector<torch::Tensor> layers{};  // output of each layer, [batch, positions, dim]
};

class AudioTransformerImpl : public torch::nn::Module {
 public:
  AudioTransformerImpl(const MulanAudioConfig& config, bool augment);
  Encoded forward(const torch::Tensor& sounds, const BatchShare& share, bool with_layers);
  void set_reference(bool reference) { reference_ = reference; }
  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }

 private:
  torch::Tensor spectrograms(const torch::Tensor& sounds);
  // Indices of the patches that survive patch dropout, [batch, patches kept]; undefined: all.
  torch::Tensor draw_patches(std::int64_t batch, std::int64_t patches, const BatchShare& share);
  // Attention bias by distance in rows and columns, [batch or 1, heads, patches, patches].
  torch::Tensor position_bias(std::int64_t rows, std::int64_t columns, const torch::Tensor& kept);
  torch::Tensor position_bias_reference(std::int64_t rows, std::int64_t columns,
                                        const torch::Tensor& kept);
  // Patch embedding plus position embedding.
  torch::Tensor embedded(const torch::Tensor& patches, const torch::Tensor& positions);

  MulanAudioConfig config_;
  bool augment_, reference_ = false;
  torch::nn::Sequential embed_{nullptr}, bias_mlp_{nullptr};
  Spectrogram spectrogram_{nullptr};
  MulanTransformer transformer_{nullptr};
  GainNorm norm_{nullptr};
  std::atomic<bool> crop_logged_ = false;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
};

class TextTransformerImpl : public torch::nn::Module {
 public:
  explicit TextTransformerImpl(const MulanTextConfig& config);
  Encoded forward(const torch::Tensor& tokens, bool with_layers);
  void set_reference(bool reference) { reference_ = reference; }

 private:
  MulanTextConfig config_;
  bool reference_ = false;
  torch::Tensor cls_token_;
  torch::nn::Embedding token_emb_{nullptr}, pos_emb_{nullptr};
  MulanTransformer transformer_{nullptr};
  GainNorm norm_{nullptr};
};

}  // namespace millrace
