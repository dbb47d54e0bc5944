#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/module/json_arguments.h>
#include <millrace/training/models/nuwa/nuwa_vqgan_config.h>

#include <c10/util/StringUtil.h>

namespace millrace {

using nlohmann::json;

NuwaVqganConfig NuwaVqganConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    throw Error("the configuration is not a JSON object").kind(ErrorKind::usage);
  }
  NuwaVqganConfig config;
  Arguments a(object, "");
  a.take("dim", config.dim);
  a.take("image_size", config.image_size);
  a.take("channels", config.channels);
  a.take("num_layers", config.num_layers);
  a.take("layer_mults", config.layer_mults);
  a.take("l2_recon_loss", config.l2_recon_loss);
  a.take("use_hinge_loss", config.use_hinge_loss);
  a.take_list("num_resnet_blocks", config.num_resnet_blocks);
  if (auto given = object.find("use_attn"); given != object.end() && given->is_boolean()) {
    bool one = false;
    a.take("use_attn", one);
    config.use_attn = {one};
  } else {
    a.take("use_attn", config.use_attn);
  }
  a.take("attn_dim_head", config.attn_dim_head);
  a.take("attn_heads", config.attn_heads);
  a.take("attn_dropout", config.attn_dropout);
  a.take("resnet_groups", config.resnet_groups);
  a.take("first_conv_kernel_size", config.first_conv_kernel_size);
  a.take("use_vgg_and_gan", config.use_vgg_and_gan);
  take_vector_quantizer(a, "vq_", config.vq);
  a.take("vq_codebook_size", config.vq.codebook_size);
  for (const auto& [key, value] : object.items()) {
    if (!a.known_.contains(key)) {
      throw Error(c10::str("NUWA's VAE has no argument ", key)).kind(ErrorKind::usage);
    }
  }
  config.check();
  return config;
}

std::string NuwaVqganConfig::to_json() const {
  json object{{"dim", dim},
              {"image_size", image_size},
              {"channels", channels},
              {"num_layers", num_layers},
              {"l2_recon_loss", l2_recon_loss},
              {"use_hinge_loss", use_hinge_loss},
              {"attn_dim_head", attn_dim_head},
              {"attn_heads", attn_heads},
              {"attn_dropout", attn_dropout},
              {"resnet_groups", resnet_groups},
              {"first_conv_kernel_size", first_conv_kernel_size},
              {"use_vgg_and_gan", use_vgg_and_gan},
              {"vq_codebook_size", vq.codebook_size},
              {"vq_codebook_dim", vq.codebook_dim},
              {"vq_decay", vq.decay},
              {"vq_eps", vq.eps},
              {"vq_commitment_weight", vq.commitment_weight},
              {"vq_kmeans_init", vq.kmeans_init},
              {"vq_kmeans_iters", vq.kmeans_iters},
              {"vq_use_cosine_sim", vq.use_cosine_sim},
              {"vq_threshold_ema_dead_code", vq.threshold_ema_dead_code}};
  // A single value is written as a number, because the package reads a list as one value per layer.
  if (num_resnet_blocks.size() == 1) {
    object["num_resnet_blocks"] = num_resnet_blocks[0];
  } else {
    object["num_resnet_blocks"] = num_resnet_blocks;
  }
  if (use_attn.size() == 1) {
    object["use_attn"] = static_cast<bool>(use_attn[0]);
  } else {
    object["use_attn"] = use_attn;
  }
  if (!layer_mults.empty()) object["layer_mults"] = layer_mults;
  return object.dump();
}

void NuwaVqganConfig::check() const {
  auto refuse = [](const std::string& why) { throw Error(why).kind(ErrorKind::usage); };
  if (dim < 1) refuse(c10::str("dim must be at least 1, but is ", dim));
  if (num_layers < 1 || num_layers > 16) {
    refuse(c10::str("num_layers must be 1 to 16, but is ", num_layers));
  }
  const std::int64_t divisor = std::int64_t{1} << num_layers;
  if (image_size < divisor || image_size % divisor != 0) {
    refuse(c10::str("image_size must be a multiple of ", divisor, " (2 to the ", num_layers,
                    " layers), but is ", image_size));
  }
  // The discriminator has num_layers downsampling layers too, and ends with a 4x4 kernel.
  if (use_vgg_and_gan && fmap_size() < 4) {
    refuse(c10::str("image_size must be at least ", 4 * divisor, " for a discriminator of ",
                    num_layers, " layers, but is ", image_size));
  }
  if (channels < 1) refuse(c10::str("channels must be at least 1, but is ", channels));
  if (attn_heads < 1 || attn_dim_head < 1) {
    refuse("attn_heads and attn_dim_head must be at least 1");
  }
  if (resnet_groups < 1 || dim % resnet_groups != 0) {
    refuse(c10::str("dim must be a multiple of ", resnet_groups, " (resnet_groups), but is ", dim));
  }
  if (use_vgg_and_gan && dim % 16 != 0) {
    refuse(c10::str("dim must be a multiple of 16 for the discriminator, but is ", dim));
  }
  auto one_per_layer = [&](const char* name, std::size_t count, bool one_is_enough) {
    if (static_cast<std::int64_t>(count) == num_layers || (one_is_enough && count == 1)) return;
    refuse(c10::str(name, " must have ", num_layers, " values, one per layer, but has ", count));
  };
  if (!layer_mults.empty()) one_per_layer("layer_mults", layer_mults.size(), false);
  one_per_layer("num_resnet_blocks", num_resnet_blocks.size(), true);
  one_per_layer("use_attn", use_attn.size(), true);
}

std::vector<std::int64_t> NuwaVqganConfig::layer_dims() const {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < num_layers; ++i) {
    const auto place = static_cast<std::size_t>(i);
    dims.push_back(dim * (layer_mults.empty() ? std::int64_t{1} << i : layer_mults[place]));
  }
  return dims;
}

std::vector<std::int64_t> NuwaVqganConfig::blocks_per_layer() const {
  if (num_resnet_blocks.size() > 1) return num_resnet_blocks;
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(num_layers), 0);
  blocks.back() = num_resnet_blocks.front();
  return blocks;
}

std::vector<bool> NuwaVqganConfig::attention_per_layer() const {
  if (use_attn.size() > 1) return use_attn;
  std::vector<bool> attends(static_cast<std::size_t>(num_layers), false);
  attends.back() = use_attn.front();
  return attends;
}

}  // namespace millrace
