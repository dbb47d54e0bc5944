#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>
#include <millrace/training/models/module/json_arguments.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace millrace {

using nlohmann::json;

namespace {

// Each list of arguments below is written once and used by both from_json() and to_json().

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, SageConvConfig>
void arguments(Config& c, Visit visit) {
  visit("aggr", c.aggr);
  visit("normalize", c.normalize);
  visit("root_weight", c.root_weight);
  visit("project", c.project);
  visit("bias", c.bias);
}

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, LocalAttentionConfig>
void arguments(Config& c, Visit visit) {
  visit("dim_head", c.dim_head);
  visit("heads", c.heads);
  visit("qk_rmsnorm", c.qk_rmsnorm);
  visit("qk_scale", c.qk_scale);
  visit("use_rotary_pos_emb", c.use_rotary_pos_emb);
  visit("use_xpos", c.use_xpos);
  visit("xpos_scale_base", c.xpos_scale_base);
  visit("exact_windowsize", c.exact_windowsize);
  visit("gate_values_per_head", c.gate_values_per_head);
  visit("shared_qk", c.shared_qk);
  visit("look_backward", c.look_backward);
  visit("look_forward", c.look_forward);
}

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, LinearAttentionConfig>
void arguments(Config& c, Visit visit) {
  visit("dim_head", c.dim_head);
  visit("heads", c.heads);
  visit("one_headed_kv", c.one_headed_kv);
  visit("gate_value_heads", c.gate_value_heads);
  visit("combine_heads", c.combine_heads);
  visit("shift_tokens", c.shift_tokens);
  visit("dropout", c.dropout);
}

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, ResidualConfig>
void arguments(Config& c, Visit visit) {
  visit("quantize_dropout", c.quantize_dropout);
  visit("quantize_dropout_cutoff_index", c.quantize_dropout_cutoff_index);
  visit("quantize_dropout_multiple_of", c.quantize_dropout_multiple_of);
}

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, ResidualLfqConfig>
void arguments(Config& c, Visit visit) {
  visit("entropy_loss_weight", c.entropy_loss_weight);
  visit("diversity_gamma", c.diversity_gamma);
  visit("frac_per_sample_entropy", c.frac_per_sample_entropy);
  visit("use_code_agnostic_commit_loss", c.use_code_agnostic_commit_loss);
  visit("soft_clamp_input_value", c.soft_clamp_input_value);
}

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, ResidualVqConfig>
void arguments(Config& c, Visit visit) {
  visit("codebook_dim", c.codebook_dim);
  visit("decay", c.decay);
  visit("eps", c.eps);
  visit("kmeans_init", c.kmeans_init);
  visit("kmeans_iters", c.kmeans_iters);
  visit("use_cosine_sim", c.use_cosine_sim);
  visit("threshold_ema_dead_code", c.threshold_ema_dead_code);
}

template <class Visit, class Config>
requires std::is_same_v<std::remove_const_t<Config>, MeshAutoencoderConfig>
void arguments(Config& c, Visit visit) {
  visit("num_discrete_coors", c.num_discrete_coors);
  visit("coor_continuous_range", c.coor_continuous_range);
  visit("dim_coor_embed", c.dim_coor_embed);
  visit("num_discrete_area", c.num_discrete_area);
  visit("dim_area_embed", c.dim_area_embed);
  visit("num_discrete_normals", c.num_discrete_normals);
  visit("dim_normal_embed", c.dim_normal_embed);
  visit("num_discrete_angle", c.num_discrete_angle);
  visit("dim_angle_embed", c.dim_angle_embed);
  visit("encoder_dims_through_depth", c.encoder_dims_through_depth);
  visit("init_decoder_conv_kernel", c.init_decoder_conv_kernel);
  visit("decoder_dims_through_depth", c.decoder_dims_through_depth);
  visit("dim_codebook", c.dim_codebook);
  visit("num_quantizers", c.num_quantizers);
  visit("codebook_size", c.codebook_size);
  visit("use_residual_lfq", c.use_residual_lfq);
  visit("rvq_stochastic_sample_codes", c.rvq_stochastic_sample_codes);
  visit("commit_loss_weight", c.commit_loss_weight);
  visit("bin_smooth_blur_sigma", c.bin_smooth_blur_sigma);
  visit("attn_encoder_depth", c.attn_encoder_depth);
  visit("attn_decoder_depth", c.attn_decoder_depth);
  visit("local_attn_window_size", c.local_attn_window_size);
  visit("use_linear_attn", c.use_linear_attn);
  visit("pad_id", c.pad_id);
  visit("attn_dropout", c.attn_dropout);
  visit("ff_dropout", c.ff_dropout);
  visit("resnet_dropout", c.resnet_dropout);
  visit("quads", c.quads);
}

// The arguments that are dictionaries.
template <class Visit, class Config>
void parts(Config& c, Visit visit) {
  visit("rq_kwargs", c.rq_kwargs);
  visit("rvq_kwargs", c.rvq_kwargs);
  visit("rlfq_kwargs", c.rlfq_kwargs);
  visit("sageconv_kwargs", c.sageconv_kwargs);
  visit("local_attn_kwargs", c.local_attn_kwargs);
  visit("linear_attn_kwargs", c.linear_attn_kwargs);
}

template <class Config>
void take_all(const json& object, Config& config, const std::string& what,
              std::set<std::string> others = {}) {
  if (!object.is_object()) {
    throw_usage_error(c10::str(what, " must be a JSON object, but is ", object.dump()));
  }
  Arguments a(object, "");
  arguments(config, [&](const char* name, auto& value) { a.take(name, value); });
  for (const auto& [key, value] : object.items()) {
    if (!a.known_.contains(key) && !others.contains(key)) {
      throw_usage_error(c10::str(what, " has no argument ", key, " here"));
    }
  }
}

template <class Config>
json json_of(const Config& config) {
  json object = json::object();
  auto visit = [&]<class T>(const char* name, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) object[name] = *value;
    } else {
      object[name] = value;
    }
  };
  arguments(config, visit);
  return object;
}

void check_positive(const char* name, std::int64_t value) {
  if (value < 1) throw_usage_error(c10::str(name, " must be positive, but is ", value));
}

void check_probability(const char* name, double value) {
  if (!(value >= 0 && value < 1)) {
    throw_usage_error(c10::str(name, " must be in [0, 1), but is ", value));
  }
}

void check_sizes(const MeshAutoencoderConfig& c) {
  for (auto [name, value] :
       {std::pair{"num_discrete_coors", c.num_discrete_coors},
        {"dim_coor_embed", c.dim_coor_embed},
        {"num_discrete_area", c.num_discrete_area},
        {"dim_area_embed", c.dim_area_embed},
        {"num_discrete_normals", c.num_discrete_normals},
        {"dim_normal_embed", c.dim_normal_embed},
        {"num_discrete_angle", c.num_discrete_angle},
        {"dim_angle_embed", c.dim_angle_embed},
        {"dim_codebook", c.dim_codebook},
        {"num_quantizers", c.num_quantizers},
        {"codebook_size", c.codebook_size},
        {"local_attn_window_size", c.local_attn_window_size},
        {"heads", c.local_attn_kwargs.heads},
        {"heads", c.linear_attn_kwargs.heads},
        {"dim_head", c.linear_attn_kwargs.dim_head},
        {"quantize_dropout_multiple_of", c.rq_kwargs.quantize_dropout_multiple_of}}) {
    check_positive(name, value);
  }
}

}  // namespace

MeshAutoencoderConfig MeshAutoencoderConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) throw_usage_error("the configuration is not a JSON object");
  MeshAutoencoderConfig config;
  // checkpoint_quantizer and flash_attn do not change the arithmetic.
  std::set<std::string> others{"compat", "checkpoint_quantizer", "flash_attn"};
  parts(config, [&](const char* name, auto& value) {
    others.insert(name);
    auto found = object.find(name);
    if (found == object.end() || found->is_null()) return;
    value = {};
    take_all(*found, value, name);
  });
  take_all(object, config, "the mesh autoencoder", others);
  if (auto found = object.find("compat"); found != object.end()) {
    config.compat = found->get<bool>();
  }
  config.check();
  return config;
}

std::string MeshAutoencoderConfig::to_json(bool for_python) const {
  json object = json_of(*this);
  parts(*this, [&](const char* name, const auto& value) { object[name] = json_of(value); });
  if (!for_python) object["compat"] = compat;
  if (for_python && rvq_kwargs.codebook_dim == 0) object["rvq_kwargs"].erase("codebook_dim");
  return object.dump();
}

void MeshAutoencoderConfig::check() const {
  check_sizes(*this);
  for (const auto* dims : {&encoder_dims_through_depth, &decoder_dims_through_depth}) {
    if (dims->empty() || std::ranges::min(*dims) < 1) {
      throw_usage_error(
          "encoder_dims_through_depth and decoder_dims_through_depth must each have one or more "
          "positive numbers");
    }
  }
  if (!(coor_continuous_range[0] < coor_continuous_range[1])) {
    throw_usage_error("coor_continuous_range must be two numbers, the smaller first");
  }
  if (init_decoder_conv_kernel < 1 || init_decoder_conv_kernel % 2 != 1) {
    throw_usage_error(
        c10::str("init_decoder_conv_kernel must be odd, but is ", init_decoder_conv_kernel));
  }
  if (attn_encoder_depth < 0 || attn_decoder_depth < 0) {
    throw_usage_error("attn_encoder_depth and attn_decoder_depth must be at least 0");
  }
  if (quads && attn_decoder_depth > 0) {
    throw_usage_error(
        "attn_decoder_depth must be 0 with quads: the package's decoder attention has the size for "
        "triangles");
  }
  if (pad_id >= 0) throw_usage_error(c10::str("pad_id must be negative, but is ", pad_id));
  const auto& aggr = sageconv_kwargs.aggr;
  if (aggr != "mean" && aggr != "sum" && aggr != "add") {
    throw_usage_error(c10::str("aggr must be mean or sum, but is ", aggr));
  }
  if (local_attn_kwargs.dim_head < 2 || local_attn_kwargs.dim_head % 2 != 0) {
    throw_usage_error(c10::str("dim_head of local_attn_kwargs must be even and at least 2, but is ",
                               local_attn_kwargs.dim_head));
  }
  if (local_attn_kwargs.look_backward < 0 || local_attn_kwargs.look_forward < 0) {
    throw_usage_error("look_backward and look_forward must be at least 0");
  }
  if (rq_kwargs.quantize_dropout && num_quantizers > 1 &&
      (rq_kwargs.quantize_dropout_cutoff_index < 0 ||
       rq_kwargs.quantize_dropout_cutoff_index >= num_quantizers)) {
    throw_usage_error(
        c10::str("quantize_dropout_cutoff_index must be at least 0 and below num_quantizers (",
                 num_quantizers, "), but is ", rq_kwargs.quantize_dropout_cutoff_index));
  }
  check_probability("attn_dropout", attn_dropout);
  check_probability("ff_dropout", ff_dropout);
  check_probability("resnet_dropout", resnet_dropout);
  check_probability("dropout", linear_attn_kwargs.dropout);
}

}  // namespace millrace
