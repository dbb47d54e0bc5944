#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/module/json_arguments.h>
#include <millrace/training/models/vqgan/vqgan_config.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {

using nlohmann::json;

namespace {

void take_lfq(const json& object, LfqOptions& lfq) {
  Arguments a(object, "");
  a.take("entropy_loss_weight", lfq.entropy_loss_weight);
  a.take("commitment_loss_weight", lfq.commitment_loss_weight);
  a.take("diversity_gamma", lfq.diversity_gamma);
  a.take("num_codebooks", lfq.num_codebooks);
  a.take("keep_num_codebooks_dim", lfq.keep_num_codebooks_dim);
  a.take("codebook_scale", lfq.codebook_scale);
  a.take("frac_per_sample_entropy", lfq.frac_per_sample_entropy);
  a.take("use_code_agnostic_commit_loss", lfq.use_code_agnostic_commit_loss);
  a.take("projection_has_bias", lfq.projection_has_bias);
  a.take("soft_clamp_input_value", lfq.soft_clamp_input_value);
  a.take("cosine_sim_project_in", lfq.cosine_sim_project_in);
  a.take("cosine_sim_project_in_scale", lfq.cosine_sim_project_in_scale);
  a.take("channel_first", lfq.channel_first);
  for (const auto& [key, value] : object.items()) {
    if (!a.known_.contains(key)) {
      throw Error(c10::str("the lookup-free quantizer has no argument ", key))
          .kind(ErrorKind::usage);
    }
  }
}

}  // namespace

VqganConfig VqganConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object())
    throw Error("the configuration is not a JSON object").kind(ErrorKind::usage);
  VqganConfig config;
  Arguments a(object, ""), encdec(object, "encdec_"), vq(object, "");
  a.take("dim", config.dim);
  a.take("channels", config.channels);
  a.take("layers", config.layers);
  a.take("l2_recon_loss", config.l2_recon_loss);
  a.take("use_hinge_loss", config.use_hinge_loss);
  a.take("lookup_free_quantization", config.lookup_free_quantization);
  a.take("codebook_size", config.codebook_size);
  a.take("use_vgg_and_gan", config.use_vgg_and_gan);
  a.take("discr_layers", config.discr_layers);
  encdec.take("layer_mults", config.layer_mults);
  encdec.take_list("num_resnet_blocks", config.num_resnet_blocks);
  encdec.take("resnet_groups", config.resnet_groups);
  encdec.take("first_conv_kernel_size", config.first_conv_kernel_size);
  if (auto given = object.find("lfq_kwargs"); given != object.end()) {
    config.lfq = {};  // as in the package, given arguments replace all of the model's defaults
    take_lfq(*given, config.lfq);
  }
  // The package drops the model's defaults even if vq_kwargs is absent; the quantizer's own remain.
  config.vq = {};
  if (auto given = object.find("vq_kwargs"); given != object.end()) {
    Arguments whole(*given, "");
    take_vector_quantizer(whole, "", config.vq);
  }
  take_vector_quantizer(vq, "vq_", config.vq);
  for (const auto& [key, value] : object.items()) {
    const bool known = a.known_.contains(key) || encdec.known_.contains(key) ||
                       vq.known_.contains(key) || key == "lfq_kwargs" || key == "vq_kwargs";
    if (!known) throw Error(c10::str("the VQGAN has no argument ", key)).kind(ErrorKind::usage);
  }
  config.check();
  return config;
}

std::string VqganConfig::to_json() const {
  json object{{"dim", dim},
              {"channels", channels},
              {"layers", layers},
              {"l2_recon_loss", l2_recon_loss},
              {"use_hinge_loss", use_hinge_loss},
              {"lookup_free_quantization", lookup_free_quantization},
              {"codebook_size", codebook_size},
              {"use_vgg_and_gan", use_vgg_and_gan},
              {"discr_layers", discr_layers},
              {"encdec_num_resnet_blocks", num_resnet_blocks},
              {"encdec_resnet_groups", resnet_groups},
              {"encdec_first_conv_kernel_size", first_conv_kernel_size}};
  if (!layer_mults.empty()) object["encdec_layer_mults"] = layer_mults;
  json lfq_object{{"entropy_loss_weight", lfq.entropy_loss_weight},
                  {"commitment_loss_weight", lfq.commitment_loss_weight},
                  {"diversity_gamma", lfq.diversity_gamma},
                  {"num_codebooks", lfq.num_codebooks},
                  {"codebook_scale", lfq.codebook_scale},
                  {"frac_per_sample_entropy", lfq.frac_per_sample_entropy},
                  {"use_code_agnostic_commit_loss", lfq.use_code_agnostic_commit_loss},
                  {"projection_has_bias", lfq.projection_has_bias},
                  {"cosine_sim_project_in", lfq.cosine_sim_project_in}};
  auto add = [&](const char* name, const auto& value) {
    if (value) lfq_object[name] = *value;
  };
  add("keep_num_codebooks_dim", lfq.keep_num_codebooks_dim);
  add("soft_clamp_input_value", lfq.soft_clamp_input_value);
  add("cosine_sim_project_in_scale", lfq.cosine_sim_project_in_scale);
  add("channel_first", lfq.channel_first);
  object["lfq_kwargs"] = lfq_object;
  object["vq_kwargs"] = {{"codebook_dim", vq.codebook_dim},
                         {"decay", vq.decay},
                         {"eps", vq.eps},
                         {"commitment_weight", vq.commitment_weight},
                         {"kmeans_init", vq.kmeans_init},
                         {"kmeans_iters", vq.kmeans_iters},
                         {"use_cosine_sim", vq.use_cosine_sim},
                         {"threshold_ema_dead_code", vq.threshold_ema_dead_code}};
  return object.dump();
}

void VqganConfig::check() const {
  auto refuse = [](const std::string& why) { throw Error(why).kind(ErrorKind::usage); };
  if (dim < 1) refuse(c10::str("dim must be at least 1, but is ", dim));
  if (layers < 1 || layers > 16) refuse(c10::str("layers must be 1 to 16, but is ", layers));
  if (discr_layers < 0 || discr_layers > 16) {
    refuse(c10::str("discr_layers must be 0 to 16, but is ", discr_layers));
  }
  if (channels < 1) refuse(c10::str("channels must be at least 1, but is ", channels));
  if (resnet_groups < 1 || dim % resnet_groups != 0) {
    refuse(c10::str("dim must be a multiple of ", resnet_groups, " (resnet_groups), but is ", dim));
  }
  if (use_vgg_and_gan && discr_layers > 0 && dim % 16 != 0) {
    refuse(c10::str("dim must be a multiple of 16 for the discriminator, but is ", dim));
  }
  if (!layer_mults.empty() && static_cast<std::int64_t>(layer_mults.size()) != layers) {
    refuse(c10::str("layer_mults must have ", layers, " values, one per layer, but has ",
                    layer_mults.size()));
  }
  if (num_resnet_blocks.size() != 1 &&
      static_cast<std::int64_t>(num_resnet_blocks.size()) != layers) {
    refuse(c10::str("num_resnet_blocks must have 1 or ", layers, " values, but has ",
                    num_resnet_blocks.size()));
  }
}

std::int64_t VqganConfig::smallest_side() const {
  const std::int64_t discriminator = std::int64_t{4} << discr_layers;
  return use_vgg_and_gan ? std::max(divisor(), discriminator) : divisor();
}

std::vector<std::int64_t> VqganConfig::layer_dims() const {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto place = static_cast<std::size_t>(i);
    dims.push_back(dim * (layer_mults.empty() ? std::int64_t{1} << i : layer_mults[place]));
  }
  return dims;
}

std::vector<std::int64_t> VqganConfig::blocks_per_layer() const {
  if (static_cast<std::int64_t>(num_resnet_blocks.size()) == layers) return num_resnet_blocks;
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(layers), 0);
  blocks.back() = num_resnet_blocks.front();
  return blocks;
}

}  // namespace millrace
