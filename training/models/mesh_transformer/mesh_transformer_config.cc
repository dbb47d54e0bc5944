#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>
#include <millrace/training/models/module/json_arguments.h>

namespace millrace {

using nlohmann::json;

namespace {

void refuse_unknown(const json& object, const Arguments& known, const std::set<std::string>& others,
                    const std::string& whose) {
  for (const auto& [key, value] : object.items()) {
    if (!known.known_.contains(key) && !others.contains(key)) {
      throw_usage_error(c10::str(whose, " has no argument ", key));
    }
  }
}

DecoderArguments decoder_of(const json& object) {
  if (!object.is_object()) throw_usage_error("attn_kwargs must be a JSON object");
  DecoderArguments arguments;
  Arguments a(object, "");
  DecoderArguments::visit_all(arguments,
                              [&](const char* name, auto& value) { a.take(name, value); });
  refuse_unknown(object, a, {}, "the decoder (attn_kwargs)");
  return arguments;
}

template <class T>
void put(json& object, const char* name, const T& value) {
  object[name] = value;
}
template <class T>
void put(json& object, const char* name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}

// Visits the arguments with plain values; from_json() and to_json() both use this list.
template <class Visit, class Config>
void plain_arguments(Config& c, Visit visit) {
  visit("codebook_size", c.codebook_size);
  visit("num_quantizers", c.num_quantizers);
  visit("quads", c.quads);
  visit("max_seq_len", c.max_seq_len);
  visit("flash_attn", c.flash_attn);
  visit("attn_depth", c.attn_depth);
  visit("attn_dim_head", c.attn_dim_head);
  visit("attn_heads", c.attn_heads);
  visit("cross_attn_num_mem_kv", c.cross_attn_num_mem_kv);
  visit("dropout", c.dropout);
  visit("coarse_pre_gateloop_depth", c.coarse_pre_gateloop_depth);
  visit("fine_pre_gateloop_depth", c.fine_pre_gateloop_depth);
  visit("gateloop_use_heinsen", c.gateloop_use_heinsen);
  visit("fine_attn_depth", c.fine_attn_depth);
  visit("pad_id", c.pad_id);
  visit("condition_on_text", c.condition_on_text);
  visit("text_condition_cond_drop_prob", c.text_condition_cond_drop_prob);
  visit("dim_text", c.dim_text);
  visit("compat", c.compat);
}

template <class Visit, class Config>
void text_encoder_arguments(Config& c, Visit visit) {
  visit("depth", c.depth);
  visit("heads", c.heads);
  visit("dim_head", c.dim_head);
  visit("max_bytes", c.max_bytes);
}

}  // namespace

MeshTransformerConfig MeshTransformerConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) throw_usage_error("the configuration is not a JSON object");
  MeshTransformerConfig config;
  Arguments a(object, "");
  plain_arguments(config, [&](const char* name, auto& value) { a.take(name, value); });
  std::vector<std::int64_t> dims{config.dim};
  a.take_list("dim", dims);
  if (dims.empty() || dims.size() > 2 || dims.back() != dims.front()) {
    throw_usage_error("dim must be one number: the package fails with two different sizes");
  }
  config.dim = dims.front();
  auto given = [&](const char* name) {
    auto found = object.find(name);
    return found != object.end() && !found->is_null() ? &*found : nullptr;
  };
  if (const json* arguments = given("attn_kwargs")) config.attn_kwargs = decoder_of(*arguments);
  if (const json* inside = given("autoencoder")) config.autoencoder = inside->dump();
  if (const json* encoder = given("text_encoder")) {
    config.text_encoder.emplace();
    Arguments its(*encoder, "");
    text_encoder_arguments(*config.text_encoder,
                           [&](const char* name, auto& value) { its.take(name, value); });
    refuse_unknown(*encoder, its, {}, "the text encoder");
  }
  // The package ignores fine_attn_dim_head and fine_attn_heads; text_condition_model_types is only
  // used to embed texts outside of this model.
  refuse_unknown(object, a,
                 {"attn_kwargs", "autoencoder", "text_encoder", "fine_attn_dim_head",
                  "fine_attn_heads", "text_condition_model_types"},
                 "the mesh transformer");
  config.check();
  return config;
}

std::string MeshTransformerConfig::to_json() const {
  json object;
  plain_arguments(*this, [&](const char* name, const auto& value) { object[name] = value; });
  object["dim"] = dim;
  json& arguments = object["attn_kwargs"] = json::object();
  DecoderArguments::visit_all(
      attn_kwargs, [&](const char* name, const auto& value) { put(arguments, name, value); });
  if (!autoencoder.empty()) object["autoencoder"] = json::parse(autoencoder);
  if (text_encoder) {
    json& encoder = object["text_encoder"] = json::object();
    text_encoder_arguments(*text_encoder,
                           [&](const char* name, const auto& value) { encoder[name] = value; });
  }
  return object.dump();
}

void MeshTransformerConfig::check() const {
  if (codebook_size < 1 || num_quantizers < 1) {
    throw_usage_error(
        "codebook_size and num_quantizers must be at least 1 and equal to the autoencoder's");
  }
  if (dim < 1 || attn_depth < 1 || fine_attn_depth < 1 || attn_dim_head < 1 || attn_heads < 1 ||
      coarse_pre_gateloop_depth < 0 || fine_pre_gateloop_depth < 0 || cross_attn_num_mem_kv < 0) {
    throw_usage_error(
        "dim, attn_depth, fine_attn_depth, attn_dim_head and attn_heads must be at least 1, and "
        "gateloop depths and cross_attn_num_mem_kv at least 0");
  }
  if (max_seq_len < codes_of_face() || max_seq_len % codes_of_face() != 0) {
    throw_usage_error(c10::str("max_seq_len must be a multiple of ", codes_of_face(),
                               ", the number of codes per face, but is ", max_seq_len));
  }
  if (dropout < 0 || dropout >= 1 || text_condition_cond_drop_prob < 0 ||
      text_condition_cond_drop_prob > 1) {
    throw_usage_error(
        "dropout must be at least 0 and below 1, and text_condition_cond_drop_prob 0 to 1");
  }
  if (pad_id >= 0) throw_usage_error(c10::str("pad_id must be negative, but is ", pad_id));
  if (condition_on_text && dim_text < 1) throw_usage_error("dim_text must be at least 1");
  if (text_encoder && !condition_on_text) {
    throw_usage_error("text_encoder needs condition_on_text");
  }
  attn_kwargs.check(attn_heads, attn_dim_head, flash_attn);
}

void DecoderArguments::check(std::int64_t heads, std::int64_t dim_head, bool flash) const {
  if (attn_num_mem_kv < 0 || ff_mult <= 0) {
    throw_usage_error("attn_num_mem_kv must be at least 0 and ff_mult above 0");
  }
  if (attn_one_kv_head && attn_kv_heads) {
    throw_usage_error("attn_one_kv_head and attn_kv_heads cannot both be given");
  }
  if (attn_kv_heads && (*attn_kv_heads < 1 || heads % *attn_kv_heads != 0)) {
    throw_usage_error(c10::str("attn_heads (", heads, ") must be a multiple of attn_kv_heads (",
                               *attn_kv_heads, ")"));
  }
  const bool grouped = attn_one_kv_head || attn_kv_heads.value_or(heads) != heads;
  if (attn_qk_norm && attn_qk_norm_dim_scale && grouped) {
    throw_usage_error("attn_qk_norm_dim_scale needs the same number of key heads and query heads");
  }
  if (rotary_pos_emb && dim_head < 32) {
    throw_usage_error(
        c10::str("attn_dim_head must be at least 32 with rotary_pos_emb, but is ", dim_head));
  }
  if (rotary_emb_dim && (*rotary_emb_dim > dim_head || *rotary_emb_dim % 2 != 0)) {
    throw_usage_error(c10::str("rotary_emb_dim must be even and at most attn_dim_head (", dim_head,
                               "), but is ", *rotary_emb_dim));
  }
  if (rotary_interpolation_factor < 1) {
    throw_usage_error(c10::str("rotary_interpolation_factor must be at least 1, but is ",
                               rotary_interpolation_factor));
  }
  if (alibi_pos_bias && rel_pos_bias) {
    throw_usage_error("alibi_pos_bias and rel_pos_bias cannot both be true");
  }
  if (alibi_num_heads && (*alibi_num_heads < 1 || *alibi_num_heads > heads)) {
    throw_usage_error(
        c10::str("alibi_num_heads must be between 1 and ", heads, ", but is ", *alibi_num_heads));
  }
  if (rel_pos_bias && flash) throw_usage_error("flash_attn must be false with rel_pos_bias");
  if (rel_pos_num_buckets < 2 || rel_pos_num_buckets > rel_pos_max_distance) {
    throw_usage_error("rel_pos_num_buckets must be between 2 and rel_pos_max_distance");
  }
  if (static_cast<int>(use_scalenorm) + static_cast<int>(use_rmsnorm) +
          static_cast<int>(use_simple_rmsnorm) >
      1) {
    throw_usage_error("only one of use_scalenorm, use_rmsnorm and use_simple_rmsnorm can be true");
  }
}

}  // namespace millrace
