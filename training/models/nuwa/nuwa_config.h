// The constructor arguments of NUWA, with the names and defaults of nuwa-pytorch 0.7.8. From JSON
// for parity fixtures and checkpoints, from flags in tools/train_nuwa.
#pragma once

#include <millrace/training/models/nuwa/nuwa_vqgan_config.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct NuwaConfig {
  std::int64_t dim = 0;  // required
  NuwaVqganConfig vae{};
  std::int64_t max_video_frames = 5;
  std::int64_t text_num_tokens = 49408;
  std::int64_t text_max_seq_len = 256;
  std::int64_t text_enc_depth = 6;
  std::int64_t text_enc_dim_head = 64;
  std::int64_t text_enc_heads = 8;
  bool text_rotary_pos_emb = true;
  // The package fails with a text encoder that is not reversible, so the default here is true.
  bool enc_reversible = true;
  std::int64_t dec_depth = 6;
  std::int64_t dec_dim_head = 64;
  std::int64_t dec_heads = 8;
  bool dec_reversible = false;
  double attn_dropout = 0;
  double ff_dropout = 0;
  double embed_gradient_frac = 0.2;
  bool shift_video_tokens = true;
  std::array<std::int64_t, 3> sparse_3dna_kernel_size{3, 3, 3};
  std::int64_t sparse_3dna_query_num_frames_chunk = 0;  // 0: all frames at once
  // One number n: layers use the dilations 1, 2, ..., n, repeated. Several: layers use these,
  // repeated.
  std::vector<std::int64_t> sparse_3dna_dilation{1};
  bool sparse_3dna_rel_pos_bias = false;
  // Reproduces a fault of the package that affects only sampling: the guidance pass without text
  // gets outputs of the transformer instead of embedded codes.
  bool compat = false;

  // Throws an Error that names an argument that is unknown or has the wrong type.
  static NuwaConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the values if they are inconsistent.
  void check() const;
  std::array<std::int64_t, 3> video_shape() const {
    return {max_video_frames, vae.fmap_size(), vae.fmap_size()};
  }
  std::int64_t tokens_per_frame() const { return vae.fmap_size() * vae.fmap_size(); }
  std::vector<std::int64_t> dilations() const;
};

}  // namespace millrace
