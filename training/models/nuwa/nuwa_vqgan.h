// The VQGAN-VAE of NUWA, equal to nuwa-pytorch 0.7.8: encodes frames as codes and decodes them.
// Parameter names, defaults and arithmetic are the package's; PictureVaeImpl has the losses.
//
//   NuwaVqgan vae(NuwaVqganConfig{.dim = 64, .image_size = 64, .num_layers = 3});
//   torch::Tensor codes = vae->get_video_indices(video);   // [batch, frames, 8, 8]
//   torch::Tensor again = vae->codebook_indices_to_video(codes);
#pragma once

#include <millrace/training/models/nuwa/nuwa_vqgan_config.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>
#include <millrace/training/models/vqgan/picture_vae.h>

#include <string>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

namespace millrace {

class NuwaVqganImpl : public PictureVaeImpl {
 public:
  explicit NuwaVqganImpl(NuwaVqganConfig config);

  const NuwaVqganConfig& config() const { return config_; }
  std::string config_json() const override { return config_.to_json(); }
  void set_ranks(const CodebookRanks& ranks) override { vq_->codebook()->ranks = ranks; }

  void check_pictures(const torch::Tensor& pictures) const override;
  Quantized encode(const torch::Tensor& pictures) override;
  std::function<torch::Tensor(const torch::Tensor&)> packed_encoder() const override;
  torch::Tensor decode(const torch::Tensor& features) override;

  // The codebook [codes, codebook_dim], before projection.
  torch::Tensor codebook() { return vq_->codebook()->codes(); }
  // Encodes [batch, frames, channels, height, width] as int64 [batch, frames, rows, columns].
  // Always runs in eval mode and without gradients.
  torch::Tensor get_video_indices(const torch::Tensor& video);
  // Decodes [batch, frames, rows, columns] or [batch, frames * rows * columns], at most `at_once`
  // frames per decoder call. If the codebook's dimension differs from the decoder's channels, codes
  // are projected; the package fails.
  torch::Tensor codebook_indices_to_video(const torch::Tensor& indices, std::int64_t at_once = 64);

 protected:
  torch::Tensor last_weight() const override { return last_->weight; }
  torch::Tensor ratio(const torch::Tensor& norm, const torch::Tensor& other) const override {
    return norm / (other + 1e-6);
  }

 private:
  NuwaVqganConfig config_;
  torch::nn::Sequential encoders_, decoders_;
  torch::nn::Conv2d last_{nullptr};
  VectorQuantizer vq_{nullptr};
};
TORCH_MODULE(NuwaVqgan);

}  // namespace millrace
