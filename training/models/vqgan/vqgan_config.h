// The constructor arguments of the VQGAN-VAE, with the names and defaults of muse-maskgit-pytorch
// 0.3.5. From JSON for parity fixtures and checkpoints, from flags in tools/train_vqgan.
#pragma once

#include <millrace/training/models/quantizers/quantizer_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct VqganConfig {
  std::int64_t dim = 0;  // required
  std::int64_t channels = 3;
  std::int64_t layers = 4;
  bool l2_recon_loss = false;
  bool use_hinge_loss = true;
  bool lookup_free_quantization = true;
  std::int64_t codebook_size = 65536;
  bool use_vgg_and_gan = true;
  std::int64_t discr_layers = 4;
  // Encoder and decoder ("encdec_..."). `layer_mults`: multiples of dim, one per layer; empty: 1,
  // 2, 4, ...
  std::vector<std::int64_t> layer_mults{};
  // One number: residual blocks of the last layer. Several: residual blocks of each layer.
  std::vector<std::int64_t> num_resnet_blocks{1};
  std::int64_t resnet_groups = 16;
  std::int64_t first_conv_kernel_size = 5;
  // `dim` and `codebook_size` of both are set from the members above.
  LfqOptions lfq{.diversity_gamma = 4};
  VectorQuantizerOptions vq{.codebook_dim = 256, .kmeans_init = true, .use_cosine_sim = true};

  // Throws an Error that names an argument that is unknown or has the wrong type.
  static VqganConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the values if they are inconsistent.
  void check() const;
  // Height and width of an image must be multiples of this.
  std::int64_t divisor() const { return std::int64_t{1} << layers; }
  // The smallest height or width that the encoder and the discriminator accept.
  std::int64_t smallest_side() const;
  std::vector<std::int64_t> layer_dims() const;
  std::vector<std::int64_t> blocks_per_layer() const;
};

}  // namespace millrace
