// The constructor arguments of NUWA's VQGAN-VAE, with the names and defaults of nuwa-pytorch 0.7.8.
// From JSON for parity fixtures and checkpoints, from flags in tools/train_nuwa_vae.
#pragma once

#include <millrace/training/models/quantizers/quantizer_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct NuwaVqganConfig {
  std::int64_t dim = 0;         // must be given
  std::int64_t image_size = 0;  // likewise
  std::int64_t channels = 3;
  std::int64_t num_layers = 4;
  std::vector<std::int64_t> layer_mults{};  // of dim, one per layer; empty: 1, 2, 4, ...
  bool l2_recon_loss = false;
  bool use_hinge_loss = true;
  // One number: blocks in the last layer; several: one per layer. Likewise whether a layer attends.
  std::vector<std::int64_t> num_resnet_blocks{1};
  std::vector<bool> use_attn{true};
  std::int64_t attn_dim_head = 64;
  std::int64_t attn_heads = 8;
  double attn_dropout = 0;
  std::int64_t resnet_groups = 16;
  std::int64_t first_conv_kernel_size = 5;
  bool use_vgg_and_gan = true;
  // "vq_..."; its dim follows from the above.
  VectorQuantizerOptions vq{.codebook_dim = 256, .kmeans_init = true, .use_cosine_sim = true};

  // Throws an Error that names the argument if one is unknown or of another type.
  static NuwaVqganConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the numbers if they do not fit each other.
  void check() const;
  // A side of what a picture becomes.
  std::int64_t fmap_size() const { return image_size >> num_layers; }
  std::vector<std::int64_t> layer_dims() const;
  std::vector<std::int64_t> blocks_per_layer() const;
  std::vector<bool> attention_per_layer() const;
};

}  // namespace millrace
