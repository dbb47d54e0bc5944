// The constructor arguments of NUWA's VQGAN-VAE, with the names and defaults of nuwa-pytorch 0.7.8.
// From JSON for parity fixtures and checkpoints, from flags in tools/train_nuwa_vae.
#pragma once

#include <millrace/training/models/quantizers/quantizer_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct NuwaVqganConfig {
  std::int64_t dim = 0;         // required
  std::int64_t image_size = 0;  // required
  std::int64_t channels = 3;
  std::int64_t num_layers = 4;
  std::vector<std::int64_t> layer_mults{};  // multiples of dim, one per layer; empty: 1, 2, 4, ...
  bool l2_recon_loss = false;
  bool use_hinge_loss = true;
  // One number: value of the last layer. Several: one per layer. The same holds for use_attn.
  std::vector<std::int64_t> num_resnet_blocks{1};
  std::vector<bool> use_attn{true};
  std::int64_t attn_dim_head = 64;
  std::int64_t attn_heads = 8;
  double attn_dropout = 0;
  std::int64_t resnet_groups = 16;
  std::int64_t first_conv_kernel_size = 5;
  bool use_vgg_and_gan = true;
  // "vq_..."; `dim` is set from the members above.
  VectorQuantizerOptions vq{.codebook_dim = 256, .kmeans_init = true, .use_cosine_sim = true};

  // Throws an Error that names an argument that is unknown or has the wrong type.
  static NuwaVqganConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the values if they are inconsistent.
  void check() const;
  // Height and width of the feature map.
  std::int64_t fmap_size() const { return image_size >> num_layers; }
  std::vector<std::int64_t> layer_dims() const;
  std::vector<std::int64_t> blocks_per_layer() const;
  std::vector<bool> attention_per_layer() const;
};

}  // namespace millrace
