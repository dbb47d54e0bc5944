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
  // Channels of compress_*, number of blocks of consecutive_residual.
  std::optional<std::int64_t> size{};
};

// Arguments of one discriminator: `discr_kwargs`, or an item of `multiscale_discrs`.
struct VideoDiscriminatorConfig {
  std::int64_t dim = 0;         // 0: the tokenizer's last dim
  std::int64_t image_size = 0;  // 0: the tokenizer's image_size / `scale`
  std::int64_t channels = 0;    // 0: 3, or the tokenizer's channels
  std::int64_t max_dim = 512;
  std::int64_t linear_attn_dim_head = 8, linear_attn_heads = 16;
  double ff_mult = 4;
  bool antialiased_downsample = false;
  // For multi-scale discriminators only: factor by which the video is downscaled. (In the package
  // these discriminators are modules that the user writes.)
  std::int64_t scale = 1;
};

struct VideoTokenizerConfig {
  std::int64_t image_size = 0;  // required
  std::vector<VideoLayerSpec> layers{{"residual"}, {"residual"}, {"residual"}};
  std::array<std::int64_t, 3> residual_conv_kernel_size{3, 3, 3};
  std::int64_t num_codebooks = 1;
  std::int64_t codebook_size = 0;  // required unless `use_fsq`
  std::int64_t channels = 3;
  std::int64_t init_dim = 64;
  std::optional<std::int64_t> max_dim{};  // default, or 0 in JSON: no limit
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
  // Reproduces the package's training faults: its multi-scale loss never calls the discriminators.
  // Operations are in the order of the Python package, which is slower.
  bool compat = false;

  // Throws an Error that names an argument that is unknown or has the wrong type.
  static VideoTokenizerConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the values if they are inconsistent.
  void check() const;

  // Frames per code, and pixels per code in height and width.
  std::int64_t time_factor() const;
  std::int64_t space_factor() const;
  // Output channels of each layer; the last is the quantizer's dim.
  std::vector<std::int64_t> layer_dims() const;
  bool conditional() const;
  // Size of the condition that layers get: `dim_cond`, expanded.
  std::int64_t expanded_cond() const;
  bool has_gan() const { return use_gan && adversarial_loss_weight > 0; }
  bool has_multiscale() const {
    return use_gan && multiscale_adversarial_loss_weight > 0 && !multiscale_discrs.empty();
  }
  bool has_perceptual() const {
    return perceptual_loss_weight > 0 && (channels == 1 || channels == 3 || channels == 4);
  }
  // `discr_kwargs` with all defaults filled in.
  VideoDiscriminatorConfig discriminator() const;
  std::vector<VideoDiscriminatorConfig> multiscale() const;
};

// Parses layers: type names, each with `:size` if it takes one, e.g. residual compress_space:128.
// Also accepts the notation of Python and JSON, 'residual', ("compress_space", 128), as one string
// or split at its commas. Throws an Error that quotes the text.
std::vector<VideoLayerSpec> parse_video_layers(const std::vector<std::string>& pieces);

}  // namespace millrace
