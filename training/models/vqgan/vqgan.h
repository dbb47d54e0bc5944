// The VQGAN-VAE of Muse, equal to muse-maskgit-pytorch 0.3.5: encodes images as codes, decodes
// codes to images, and is trained against a discriminator. Parameter names, defaults and arithmetic
// are the package's.
//
//   Vqgan model(VqganConfig{.dim = 64, .layers = 3, .codebook_size = 1024});
//   GeneratorLoss loss = model->generator_loss(images);      // [batch, 3, 128, 128] in [0, 1]
//   loss.backward();
//   torch::Tensor fake_or_real = model->discriminator_loss(images, {.gradient_penalty = true});
#pragma once

#include <millrace/training/models/quantizers/lfq.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>
#include <millrace/training/models/vqgan/picture_vae.h>
#include <millrace/training/models/vqgan/vqgan_config.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

class EncoderDecoderImpl;

class VqganImpl : public PictureVaeImpl {
 public:
  explicit VqganImpl(VqganConfig config);

  const VqganConfig& config() const { return config_; }
  std::string config_json() const override { return config_.to_json(); }
  void set_draws(std::shared_ptr<Draws> draws) override;
  void set_ranks(const CodebookRanks& ranks) override;

  void check_pictures(const torch::Tensor& pictures) const override;
  Quantized encode(const torch::Tensor& pictures) override;
  std::function<torch::Tensor(const torch::Tensor&)> packed_encoder() const override;
  torch::Tensor decode(const torch::Tensor& features) override;
  torch::Tensor decode_indices(const torch::Tensor& indices);

 protected:
  torch::Tensor last_weight() const override;
  torch::Tensor ratio(const torch::Tensor& norm, const torch::Tensor& other) const override;

 private:
  VqganConfig config_;
  std::shared_ptr<EncoderDecoderImpl> encoder_decoder_;
  Lfq lfq_{nullptr};
  VectorQuantizer vq_{nullptr};
};
TORCH_MODULE(Vqgan);

}  // namespace millrace
