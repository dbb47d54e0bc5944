// The constructor arguments of MeshGPT's autoencoder, with the names and defaults of
// meshgpt-pytorch 1.2.2. From JSON for parity fixtures and checkpoints, from flags in
// tools/train_mesh_autoencoder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

// A dictionary argument in Python replaces all of the autoencoder's defaults for it. So these
// structs have the defaults of the class that takes the dictionary; MeshAutoencoderConfig has the
// autoencoder's.

// `sageconv_kwargs`
struct SageConvConfig {
  std::string aggr = "mean";  // "mean" or "sum" ("add")
  bool normalize = false, root_weight = true, project = false, bias = true;
};

// `local_attn_kwargs`
struct LocalAttentionConfig {
  std::int64_t dim_head = 64, heads = 8;
  bool qk_rmsnorm = false;
  double qk_scale = 8;  // used with qk_rmsnorm
  bool use_rotary_pos_emb = true, use_xpos = false;
  std::optional<double> xpos_scale_base{};  // default: half the window size
  bool exact_windowsize = true, gate_values_per_head = false, shared_qk = false;
  std::int64_t look_backward = 1, look_forward = 1;  // number of windows
};

// `linear_attn_kwargs`
struct LinearAttentionConfig {
  std::int64_t dim_head = 16, heads = 8;
  bool one_headed_kv = false, gate_value_heads = false, combine_heads = true, shift_tokens = false;
  double dropout = 0;
};

// `rq_kwargs`: arguments of either residual quantizer.
struct ResidualConfig {
  bool quantize_dropout = false;
  std::int64_t quantize_dropout_cutoff_index = 0, quantize_dropout_multiple_of = 1;
};

// `rlfq_kwargs`: arguments of each lookup-free quantizer.
struct ResidualLfqConfig {
  double entropy_loss_weight = 0.1, diversity_gamma = 1, frac_per_sample_entropy = 1;
  bool use_code_agnostic_commit_loss = false;
  std::optional<double> soft_clamp_input_value{};
};

// `rvq_kwargs`: arguments of the codebook.
struct ResidualVqConfig {
  std::int64_t codebook_dim = 0;  // 0: dim_codebook, without projections
  double decay = 0.8, eps = 1e-5;
  bool kmeans_init = false, use_cosine_sim = false;
  std::int64_t kmeans_iters = 10;
  double threshold_ema_dead_code = 0;
};

struct MeshAutoencoderConfig {
  std::int64_t num_discrete_coors = 128;
  std::array<double, 2> coor_continuous_range{-1, 1};
  std::int64_t dim_coor_embed = 64;
  std::int64_t num_discrete_area = 128, dim_area_embed = 16;
  std::int64_t num_discrete_normals = 128, dim_normal_embed = 64;
  std::int64_t num_discrete_angle = 128, dim_angle_embed = 16;
  std::vector<std::int64_t> encoder_dims_through_depth{64, 128, 256, 256, 576};
  std::int64_t init_decoder_conv_kernel = 7;
  std::vector<std::int64_t> decoder_dims_through_depth{128, 128, 128, 128, 192, 192, 192, 192, 256,
                                                       256, 256, 256, 256, 256, 384, 384, 384};
  std::int64_t dim_codebook = 192;
  std::int64_t num_quantizers = 2;
  std::int64_t codebook_size = 16384;
  bool use_residual_lfq = true;  // false: one codebook, shared by all quantizers
  ResidualConfig rq_kwargs{.quantize_dropout = true, .quantize_dropout_cutoff_index = 1};
  ResidualVqConfig rvq_kwargs{.kmeans_init = true, .threshold_ema_dead_code = 2};
  ResidualLfqConfig rlfq_kwargs{.soft_clamp_input_value = 10};
  bool rvq_stochastic_sample_codes = true;
  SageConvConfig sageconv_kwargs{.normalize = true, .project = true};
  double commit_loss_weight = 0.1;
  double bin_smooth_blur_sigma = 0.4;  // below 0 disables the blur
  std::int64_t attn_encoder_depth = 0, attn_decoder_depth = 0;
  LocalAttentionConfig local_attn_kwargs{.dim_head = 32, .heads = 8};
  std::int64_t local_attn_window_size = 64;
  LinearAttentionConfig linear_attn_kwargs{.dim_head = 8, .heads = 16};
  bool use_linear_attn = true;
  std::int64_t pad_id = -1;
  double attn_dropout = 0, ff_dropout = 0, resnet_dropout = 0;
  bool quads = false;
  // Reproduces the package's training faults: the quantizer's loss includes padding vertices of
  // meshes that are shorter than the longest of the batch.
  bool compat = false;

  std::int64_t corners() const { return quads ? 4 : 3; }
  std::int64_t coordinates() const { return corners() * 3; }

  // Throw an Error of kind usage that names an argument that is unknown or invalid.
  static MeshAutoencoderConfig from_json(const std::string& text);
  void check() const;
  // from_json() restores the configuration. `for_python`: leave out what the package's constructor
  // does not accept.
  std::string to_json(bool for_python = false) const;
};

}  // namespace millrace
