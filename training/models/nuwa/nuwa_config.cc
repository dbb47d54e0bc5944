#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/module/json_arguments.h>
#include <millrace/training/models/nuwa/nuwa_config.h>

#include <algorithm>
#include <numeric>

#include <c10/util/StringUtil.h>

namespace millrace {

using nlohmann::json;

NuwaConfig NuwaConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    throw Error("the configuration is not a JSON object").kind(ErrorKind::usage);
  }
  NuwaConfig config;
  Arguments a(object, "");
  json vae;
  a.take("vae", vae);
  config.vae = NuwaVqganConfig::from_json(vae.dump());
  a.take("dim", config.dim);
  a.take("max_video_frames", config.max_video_frames);
  a.take("text_num_tokens", config.text_num_tokens);
  a.take("text_max_seq_len", config.text_max_seq_len);
  a.take("text_enc_depth", config.text_enc_depth);
  a.take("text_enc_dim_head", config.text_enc_dim_head);
  a.take("text_enc_heads", config.text_enc_heads);
  a.take("text_rotary_pos_emb", config.text_rotary_pos_emb);
  a.take("enc_reversible", config.enc_reversible);
  a.take("dec_depth", config.dec_depth);
  a.take("dec_dim_head", config.dec_dim_head);
  a.take("dec_heads", config.dec_heads);
  a.take("dec_reversible", config.dec_reversible);
  a.take("attn_dropout", config.attn_dropout);
  a.take("ff_dropout", config.ff_dropout);
  std::int64_t same_sums = 0;  // only saves memory in the package; ignored here
  a.take("ff_chunk_size", same_sums);
  a.take("embed_gradient_frac", config.embed_gradient_frac);
  a.take("shift_video_tokens", config.shift_video_tokens);
  a.take_sizes("sparse_3dna_kernel_size", config.sparse_3dna_kernel_size);
  a.take("sparse_3dna_query_num_frames_chunk", config.sparse_3dna_query_num_frames_chunk);
  a.take_list("sparse_3dna_dilation", config.sparse_3dna_dilation);
  if (auto given = object.find("sparse_3dna_dilation");
      given != object.end() && given->is_array() && given->size() == 1) {
    // The package reads a list as one dilation per layer, but a single number n as 1 to n. A list
    // of one number is stored twice to keep it a list.
    config.sparse_3dna_dilation.push_back(config.sparse_3dna_dilation[0]);
  }
  a.take("sparse_3dna_rel_pos_bias", config.sparse_3dna_rel_pos_bias);
  a.take("compat", config.compat);
  for (const auto& [key, value] : object.items()) {
    if (!a.known_.contains(key)) {
      throw Error(c10::str("NUWA has no argument ", key)).kind(ErrorKind::usage);
    }
  }
  config.check();
  return config;
}

std::string NuwaConfig::to_json() const {
  json object{{"dim", dim},
              {"vae", json::parse(vae.to_json())},
              {"max_video_frames", max_video_frames},
              {"text_num_tokens", text_num_tokens},
              {"text_max_seq_len", text_max_seq_len},
              {"text_enc_depth", text_enc_depth},
              {"text_enc_dim_head", text_enc_dim_head},
              {"text_enc_heads", text_enc_heads},
              {"text_rotary_pos_emb", text_rotary_pos_emb},
              {"enc_reversible", enc_reversible},
              {"dec_depth", dec_depth},
              {"dec_dim_head", dec_dim_head},
              {"dec_heads", dec_heads},
              {"dec_reversible", dec_reversible},
              {"attn_dropout", attn_dropout},
              {"ff_dropout", ff_dropout},
              {"embed_gradient_frac", embed_gradient_frac},
              {"shift_video_tokens", shift_video_tokens},
              {"sparse_3dna_kernel_size", sparse_3dna_kernel_size},
              {"sparse_3dna_rel_pos_bias", sparse_3dna_rel_pos_bias}};
  if (compat) object["compat"] = true;  // the package's constructor has no such argument
  if (sparse_3dna_query_num_frames_chunk > 0) {
    object["sparse_3dna_query_num_frames_chunk"] = sparse_3dna_query_num_frames_chunk;
  }
  if (sparse_3dna_dilation.size() == 1) {
    object["sparse_3dna_dilation"] = sparse_3dna_dilation[0];
  } else {
    object["sparse_3dna_dilation"] = sparse_3dna_dilation;
  }
  return object.dump();
}

void NuwaConfig::check() const {
  vae.check();
  auto positive = [&](const char* name, std::int64_t value) {
    if (value < 1) throw_usage_error(c10::str(name, " must be at least 1, but is ", value));
  };
  positive("dim", dim);
  positive("max_video_frames", max_video_frames);
  positive("text_max_seq_len", text_max_seq_len);
  positive("text_enc_depth", text_enc_depth);
  positive("text_enc_dim_head", text_enc_dim_head);
  positive("text_enc_heads", text_enc_heads);
  positive("dec_depth", dec_depth);
  positive("dec_dim_head", dec_dim_head);
  positive("dec_heads", dec_heads);
  if (text_num_tokens < 2) {
    throw_usage_error(
        c10::str("text_num_tokens must be at least 2 (0 is padding), but is ", text_num_tokens));
  }
  if (text_rotary_pos_emb && text_enc_dim_head % 2 != 0) {
    throw_usage_error(
        c10::str("text_enc_dim_head must be even (rotary embeddings rotate halves), but is ",
                 text_enc_dim_head));
  }
  if (tokens_per_frame() < 2) {
    throw_usage_error(
        "a frame must have more than one token; use fewer num_layers or a larger image_size");
  }
  if (sparse_3dna_query_num_frames_chunk < 0) {
    throw_usage_error(
        c10::str("sparse_3dna_query_num_frames_chunk must be 0 (all frames) or more, but is ",
                 sparse_3dna_query_num_frames_chunk));
  }
  for (std::int64_t kernel : sparse_3dna_kernel_size) {
    if (kernel < 1 || kernel % 2 == 0) {
      throw_usage_error(c10::str("sparse_3dna_kernel_size must be odd, but is ", kernel));
    }
  }
  if (sparse_3dna_rel_pos_bias &&
      std::ranges::all_of(sparse_3dna_kernel_size, [](auto kernel) { return kernel == 1; })) {
    throw_usage_error("sparse_3dna_rel_pos_bias needs a sparse_3dna_kernel_size above 1");
  }
  if (sparse_3dna_dilation.empty()) {
    throw_usage_error("sparse_3dna_dilation must have at least one value, but is empty");
  }
  for (std::int64_t dilation : sparse_3dna_dilation) positive("sparse_3dna_dilation", dilation);
}

std::vector<std::int64_t> NuwaConfig::dilations() const {
  if (sparse_3dna_dilation.size() > 1) return sparse_3dna_dilation;
  std::vector<std::int64_t> all(static_cast<std::size_t>(sparse_3dna_dilation.front()));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

}  // namespace millrace
