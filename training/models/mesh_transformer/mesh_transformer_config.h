// The constructor arguments of MeshGPT's transformer, with the names and defaults of
// meshgpt-pytorch 1.2.2. From JSON for parity fixtures and checkpoints, from flags in
// tools/train_mesh_transformer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// `attn_kwargs`: what x-transformers 1.29.2 calls by the same names, with its defaults.
struct DecoderArguments {
  bool ff_glu = false, ff_glu_mult_bias = false;
  double ff_mult = 4;
  bool ff_swish = false, ff_relu_squared = false, ff_post_act_ln = false, ff_no_bias = false;
  std::int64_t attn_num_mem_kv = 0;  // learned keys and values before the others
  std::optional<std::int64_t> attn_kv_heads{};
  bool attn_one_kv_head = false;
  bool attn_qk_norm = false, attn_qk_norm_dim_scale = false;
  double attn_qk_norm_scale = 10;
  bool attn_head_scale = false, attn_gate_values = false;
  bool rotary_pos_emb = false;
  std::optional<std::int64_t> rotary_emb_dim{};
  double rotary_interpolation_factor = 1, rotary_base_rescale_factor = 1;
  bool alibi_pos_bias = false;
  std::optional<std::int64_t> alibi_num_heads{};
  bool rel_pos_bias = false;
  std::int64_t rel_pos_num_buckets = 32, rel_pos_max_distance = 128;
  bool use_scalenorm = false, use_rmsnorm = false, use_simple_rmsnorm = false;
  bool sandwich_norm = false, scale_residual = false;

  // Throws an Error of kind usage if they do not fit heads of this size, or each other.
  void check(std::int64_t heads, std::int64_t dim_head, bool flash) const;

  // Visits each under its name: visit("ff_glu", ff_glu).
  template <class Self, class Visit>
  static void visit_all(Self& self, Visit visit);
};

// The text encoder that is trained with the transformer: bytes through a few layers.
struct TextEncoderConfig {
  std::int64_t depth = 2, heads = 4, dim_head = 32;
  std::int64_t max_bytes = 256;  // what is longer is cut off
};

struct MeshTransformerConfig {
  // What the package takes from the autoencoder.
  std::int64_t codebook_size = 16384, num_quantizers = 2;
  bool quads = false;

  std::int64_t dim = 512;
  // Codes of a mesh: a multiple of those of a face, which the package's default of 8192 is not.
  std::int64_t max_seq_len = 8190;
  bool flash_attn = true;
  std::int64_t attn_depth = 12, attn_dim_head = 64, attn_heads = 16;
  DecoderArguments attn_kwargs{.ff_glu = true, .attn_num_mem_kv = 4};
  std::int64_t cross_attn_num_mem_kv = 4;
  double dropout = 0;
  std::int64_t coarse_pre_gateloop_depth = 2, fine_pre_gateloop_depth = 2;
  bool gateloop_use_heinsen = false;  // with `compat` alone: the same recurrence otherwise
  std::int64_t fine_attn_depth = 2;   // fine_attn_dim_head and fine_attn_heads do nothing in Python
  std::int64_t pad_id = -1;
  bool condition_on_text = false;
  double text_condition_cond_drop_prob = 0.25;
  // Channels of `text_embeds`; in Python those of the text model (T5 base: 768).
  std::int64_t dim_text = 768;
  std::optional<TextEncoderConfig> text_encoder{};  // one of our own; else texts come as embeddings
  // The arguments of the autoencoder inside, as JSON, for checkpoints; may be empty.
  std::string autoencoder{};
  // The package's faults of training too: a label 0 after every mesh that is not the longest of its
  // batch. Every sum is taken in its order; slower.
  bool compat = false;

  // Throws an Error that names the argument if one is unknown or of another type.
  static MeshTransformerConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the numbers if they do not fit each other.
  void check() const;

  std::int64_t vertices_of_face() const { return quads ? 4 : 3; }
  std::int64_t codes_of_face() const { return vertices_of_face() * num_quantizers; }
  std::int64_t end_of_mesh() const { return codebook_size; }  // the code after the last
};

template <class Self, class Visit>
void DecoderArguments::visit_all(Self& self, Visit visit) {
  visit("ff_glu", self.ff_glu);
  visit("ff_glu_mult_bias", self.ff_glu_mult_bias);
  visit("ff_mult", self.ff_mult);
  visit("ff_swish", self.ff_swish);
  visit("ff_relu_squared", self.ff_relu_squared);
  visit("ff_post_act_ln", self.ff_post_act_ln);
  visit("ff_no_bias", self.ff_no_bias);
  visit("attn_num_mem_kv", self.attn_num_mem_kv);
  visit("attn_kv_heads", self.attn_kv_heads);
  visit("attn_one_kv_head", self.attn_one_kv_head);
  visit("attn_qk_norm", self.attn_qk_norm);
  visit("attn_qk_norm_dim_scale", self.attn_qk_norm_dim_scale);
  visit("attn_qk_norm_scale", self.attn_qk_norm_scale);
  visit("attn_head_scale", self.attn_head_scale);
  visit("attn_gate_values", self.attn_gate_values);
  visit("rotary_pos_emb", self.rotary_pos_emb);
  visit("rotary_emb_dim", self.rotary_emb_dim);
  visit("rotary_interpolation_factor", self.rotary_interpolation_factor);
  visit("rotary_base_rescale_factor", self.rotary_base_rescale_factor);
  visit("alibi_pos_bias", self.alibi_pos_bias);
  visit("alibi_num_heads", self.alibi_num_heads);
  visit("rel_pos_bias", self.rel_pos_bias);
  visit("rel_pos_num_buckets", self.rel_pos_num_buckets);
  visit("rel_pos_max_distance", self.rel_pos_max_distance);
  visit("use_scalenorm", self.use_scalenorm);
  visit("use_rmsnorm", self.use_rmsnorm);
  visit("use_simple_rmsnorm", self.use_simple_rmsnorm);
  visit("sandwich_norm", self.sandwich_norm);
  visit("scale_residual", self.scale_residual);
}

}  // namespace millrace
