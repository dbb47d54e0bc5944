// The constructor arguments of the video tokenizer, with the names and defaults of magvit2-pytorch
// 0.4.2. From JSON for parity fixtures and checkpoints, from flags in tools/train_video_tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

// One entry of `layers`: "residual", or ("compress_space", 128).
struct VideoLayerSpec {
  std::string type;
  std::optional<std::int64_t> size{};  // channels of a compress_*, number of a consecutive_residual
};

// `discr_kwargs`, and each of `multiscale_discrs`.
struct VideoDiscriminatorConfig {
  std::int64_t dim = 0;         // 0: the tokenizer's last
  std::int64_t image_size = 0;  // 0: the tokenizer's, divided by `scale`
  std::int64_t channels = 0;    // 0: 3, or the tokenizer's
  std::int64_t max_dim = 512;
  std::int64_t linear_attn_dim_head = 8, linear_attn_heads = 16;
  double ff_mult = 4;
  bool antialiased_downsample = false;
  // Multi-scale discriminators only: how many times smaller than the video they see it. (In the
  // package they are modules that the user writes.)
  std::int64_t scale = 1;
};

struct VideoTokenizerConfig {
  std::int64_t image_size = 0;  // must be given
  std::vector<VideoLayerSpec> layers{{"residual"}, {"residual"}, {"residual"}};
  std::array<std::int64_t, 3> residual_conv_kernel_size{3, 3, 3};
  std::int64_t num_codebooks = 1;
  std::int64_t codebook_size = 0;  // must be given unless `use_fsq`
  std::int64_t channels = 3;
  std::int64_t init_dim = 64;
  std::optional<std::int64_t> max_dim{};  // unless given, or 0 in JSON: no limit
  std::int64_t dim_cond = 0;              // 0: no conditional layers
  double dim_cond_expansion_factor = 4;
  std::array<std::int64_t, 3> input_conv_kernel_size{7, 7, 7};
  std::array<std::int64_t, 3> output_conv_kernel_size{3, 3, 3};
  std::string pad_mode = "constant";  // or reflect, replicate, circular
  double lfq_entropy_loss_weight = 0.1;
  double lfq_commitment_loss_weight = 1;
  double lfq_diversity_gamma = 2.5;
  double quantizer_aux_loss_weight = 1;
  bool use_fsq = false;
  std::vector<std::int64_t> fsq_levels{};
  std::int64_t attn_dim_head = 32, attn_heads = 8;
  double attn_dropout = 0;
  std::int64_t linear_attn_dim_head = 8, linear_attn_heads = 16;
  double perceptual_loss_weight = 0.1;
  std::optional<VideoDiscriminatorConfig> discr_kwargs{};
  std::vector<VideoDiscriminatorConfig> multiscale_discrs{};
  bool use_gan = true;
  double adversarial_loss_weight = 1;
  double grad_penalty_loss_weight = 10;
  double multiscale_adversarial_loss_weight = 1;
  bool separate_first_frame_encoding = false;
  // The package's faults of training too: its multi-scale loss never asks the discriminators. Every
  // sum is taken in its order; slower.
  bool compat = false;

  // Throws an Error that names the argument if one is unknown or of another type.
  static VideoTokenizerConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the numbers if they do not fit each other.
  void check() const;

  // How many frames become one, and how many times smaller a side becomes.
  std::int64_t time_factor() const;
  std::int64_t space_factor() const;
  // The channels that each layer gives; the last are the quantizer's.
  std::vector<std::int64_t> layer_dims() const;
  bool conditional() const;
  // What the conditional layers are given, `dim_cond` expanded.
  std::int64_t expanded_cond() const;
  bool has_gan() const { return use_gan && adversarial_loss_weight > 0; }
  bool has_multiscale() const {
    return use_gan && multiscale_adversarial_loss_weight > 0 && !multiscale_discrs.empty();
  }
  bool has_perceptual() const {
    return perceptual_loss_weight > 0 && (channels == 1 || channels == 3 || channels == 4);
  }
  // With what is left out filled in.
  VideoDiscriminatorConfig discriminator() const;
  std::vector<VideoDiscriminatorConfig> multiscale() const;
};

// Names, each followed by its size if it has one: residual compress_space:128, or as Python and
// JSON write it, 'residual', ("compress_space", 128); in one piece or cut up at its commas. Throws
// an Error that shows the text.
std::vector<VideoLayerSpec> parse_video_layers(const std::vector<std::string>& pieces);

}  // namespace millrace
