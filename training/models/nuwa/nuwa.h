// NUWA's text-to-video model, equal to nuwa-pytorch 0.7.8: a text transformer, and an
// autoregressive transformer that predicts the codes of a video from neighbouring codes and the
// text. Parameter names, defaults and arithmetic are the package's.
//
//   Nuwa model(NuwaConfig{.dim = 256, .vae = vae->config()});
//   torch::Tensor loss = model->loss(text, video);     // int64 [batch, words], 0 is padding
//   torch::Tensor clips = model->generate(text, {.num_frames = 5});
#pragma once

#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/nuwa/nuwa_config.h>
#include <millrace/training/models/nuwa/nuwa_generate_options.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>

#include <memory>
#include <vector>

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

class NuwaTransformerImpl;
class AxialPositionsImpl;

struct NuwaLossOptions {
  // Probability of dropping the text of a row in training, for classifier-free guidance.
  double cond_dropout_prob = 0.2;
};

class NuwaImpl : public torch::nn::Module {
 public:
  explicit NuwaImpl(NuwaConfig config);

  const NuwaConfig& config() const { return config_; }
  NuwaVqgan& vae() { return vae_; }
  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }
  // All parameters except the VAE's. Each appears once, although a reversible network registers its
  // layers under two names.
  std::vector<torch::Tensor> trained_parameters() const;

  // Returns [batch, words, dim]. `mask`: true where there is a word.
  torch::Tensor embed_text(const torch::Tensor& text, const torch::Tensor& mask);
  // Codes of `video`, which is float [batch, frames, channels, height, width] or holds codes
  // already.
  torch::Tensor codes_of(const torch::Tensor& video);
  // Logits [batch, codes, codebook_size] of each code, given the text and the codes before it.
  torch::Tensor logits(const torch::Tensor& text, const torch::Tensor& codes,
                       const NuwaLossOptions& options = {});
  torch::Tensor loss(const torch::Tensor& text, const torch::Tensor& video,
                     const NuwaLossOptions& options = {});

  // Returns int64 [batch, frames, rows, columns]. Runs without gradients and in eval mode.
  torch::Tensor generate_codes(const torch::Tensor& text, const NuwaGenerateOptions& options = {});
  // Returns [batch, frames, channels, height, width].
  torch::Tensor generate(const torch::Tensor& text, const NuwaGenerateOptions& options = {});

 private:
  class Generation;

  torch::Tensor positions() const;
  torch::Tensor embed_codes(const torch::Tensor& codes, std::int64_t first_place) const;
  torch::Tensor start(std::int64_t batch) const;
  torch::Tensor choose(const torch::Tensor& logits, const NuwaGenerateOptions& options);
  void check_text(const torch::Tensor& text) const;

  NuwaConfig config_;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  NuwaVqgan vae_{nullptr};
  torch::Tensor video_bos_, inv_freq_;
  torch::nn::Embedding text_embedding_{nullptr}, text_positions_{nullptr},
      image_embedding_{nullptr};
  std::shared_ptr<NuwaTransformerImpl> text_transformer_, video_transformer_;
  std::shared_ptr<AxialPositionsImpl> video_positions_;
  torch::nn::Linear to_logits_{nullptr};
};
TORCH_MODULE(Nuwa);

}  // namespace millrace
