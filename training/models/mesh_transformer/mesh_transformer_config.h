// The constructor arguments of MeshGPT's transformer, with the names and defaults of
// meshgpt-pytorch 1.2.2. From JSON for parity fixtures and checkpoints, from flags in
// tools/train_mesh_transformer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// `attn_kwargs`: arguments of x-transformers 1.29.2, with its names and defaults.
struct DecoderArguments {
  bool ff_glu = false, ff_glu_mult_bias = false;
  double ff_mult = 4;
  bool ff_swish = false, ff_relu_squared = false, ff_post_act_ln = false, ff_no_bias = false;
  std::int64_t attn_num_mem_kv = 0;  // number of learned keys and values
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

  // Throws an Error of kind usage if they are inconsistent with each other or with the size of a
  // head.
  void check(std::int64_t heads, std::int64_t dim_head, bool flash) const;

  // Calls visit(name, member) for each member, e.g. visit("ff_glu", ff_glu).
  template <class Self, class Visit>
  static void visit_all(Self& self, Visit visit);
};

// The text encoder that is trained with the transformer: a small transformer over bytes.
struct TextEncoderConfig {
  std::int64_t depth = 2, heads = 4, dim_head = 32;
  std::int64_t max_bytes = 256;  // longer texts are truncated
};

struct MeshTransformerConfig {
  // The package reads these from the autoencoder.
  std::int64_t codebook_size = 16384, num_quantizers = 2;
  bool quads = false;

  std::int64_t dim = 512;
  // In codes; a multiple of the codes per face (the package's default of 8192 is not).
  std::int64_t max_seq_len = 8190;
  bool flash_attn = true;
  std::int64_t attn_depth = 12, attn_dim_head = 64, attn_heads = 16;
  DecoderArguments attn_kwargs{.ff_glu = true, .attn_num_mem_kv = 4};
  std::int64_t cross_attn_num_mem_kv = 4;
  double dropout = 0;
  std::int64_t coarse_pre_gateloop_depth = 2, fine_pre_gateloop_depth = 2;
  bool gateloop_use_heinsen = false;  // another order of the same sums; used only with `compat`
  std::int64_t fine_attn_depth = 2;   // the package ignores fine_attn_dim_head and fine_attn_heads
  std::int64_t pad_id = -1;
  bool condition_on_text = false;
  double text_condition_cond_drop_prob = 0.25;
  // Channels of `text_embeds`; in the package, of the text model (T5 base: 768).
  std::int64_t dim_text = 768;
  std::optional<TextEncoderConfig> text_encoder{};  // if empty, texts come as embeddings
  // The arguments of the autoencoder as JSON, for checkpoints; may be empty.
  std::string autoencoder{};
  // Reproduces the package's training faults: a label 0 after every mesh that is shorter than the
  // longest of its batch. Operations are in the order of the Python package, which is slower.
  bool compat = false;

  // Throws an Error that names an argument that is unknown or has the wrong type.
  static MeshTransformerConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the values if they are inconsistent.
  void check() const;

  std::int64_t vertices_of_face() const { return quads ? 4 : 3; }
  std::int64_t codes_of_face() const { return vertices_of_face() * num_quantizers; }
  std::int64_t end_of_mesh() const { return codebook_size; }  // the code that ends a mesh
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
