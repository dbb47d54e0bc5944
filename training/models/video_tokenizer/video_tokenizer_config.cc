#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/module/json_arguments.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_config.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace millrace {

using nlohmann::json;

namespace {

const std::set<std::string> layer_types = {
    "residual",      "consecutive_residual", "cond_residual",    "compress_space",
    "compress_time", "attend_space",         "attend_time",      "linear_attend_space",
    "gateloop_time", "cond_attend_space",    "cond_attend_time", "cond_linear_attend_space"};

bool takes_size(const std::string& type) {
  return type.starts_with("compress_") || type == "consecutive_residual";
}

// Each item is a type name, or a list of a type name and a number.
std::vector<VideoLayerSpec> layers_of(const json& list) {
  auto is_text = [](const json& item) { return item.is_string(); };
  if (list.is_string()) return parse_video_layers({list.get<std::string>()});
  if (list.is_array() && std::ranges::all_of(list, is_text)) {
    return parse_video_layers(list.get<std::vector<std::string>>());
  }
  auto wrong = [](const json& item) {
    throw_usage_error(c10::str(
        "layers has an invalid item ", item.dump(),
        R"(; an item is a type, e.g. "residual", or a type and a size: ("compress_space", 128))"));
  };
  if (!list.is_array()) wrong(list);
  std::vector<VideoLayerSpec> layers;
  for (const json& item : list) {
    const bool pair = item.is_array() && !item.empty() && item.size() <= 2 && item[0].is_string();
    if (!item.is_string() && !pair) wrong(item);
    layers.push_back({(pair ? item[0] : item).get<std::string>()});
    if (!pair || item.size() < 2) continue;
    if (!item[1].is_number_integer()) wrong(item);
    layers.back().size = item[1].get<std::int64_t>();
  }
  return layers;
}

json json_of(const std::vector<VideoLayerSpec>& layers) {
  json list = json::array();
  for (const VideoLayerSpec& layer : layers) {
    if (layer.size) {
      list.push_back({layer.type, *layer.size});
    } else {
      list.push_back(layer.type);
    }
  }
  return list;
}

VideoDiscriminatorConfig discriminator_of(const json& object) {
  if (!object.is_object()) {
    throw_usage_error("the arguments of a discriminator must be a JSON object");
  }
  VideoDiscriminatorConfig config;
  Arguments a(object, "");
  a.take("dim", config.dim);
  a.take("image_size", config.image_size);
  a.take("channels", config.channels);
  a.take("max_dim", config.max_dim);
  a.take("linear_attn_dim_head", config.linear_attn_dim_head);
  a.take("linear_attn_heads", config.linear_attn_heads);
  a.take("ff_mult", config.ff_mult);
  a.take("antialiased_downsample", config.antialiased_downsample);
  a.take("scale", config.scale);
  std::int64_t unused = 0;  // the package accepts and ignores these two arguments
  a.take("attn_heads", unused);
  a.take("attn_dim_head", unused);
  for (const auto& [key, value] : object.items()) {
    if (!a.known_.contains(key)) {
      throw_usage_error(c10::str("the discriminator has no argument ", key));
    }
  }
  return config;
}

json json_of(const VideoDiscriminatorConfig& config) {
  return {{"dim", config.dim},
          {"image_size", config.image_size},
          {"channels", config.channels},
          {"max_dim", config.max_dim},
          {"linear_attn_dim_head", config.linear_attn_dim_head},
          {"linear_attn_heads", config.linear_attn_heads},
          {"ff_mult", config.ff_mult},
          {"antialiased_downsample", config.antialiased_downsample},
          {"scale", config.scale}};
}

void check_discriminator(const VideoDiscriminatorConfig& config) {
  if (config.dim < 1 || config.channels < 1 || config.max_dim < 1 ||
      config.linear_attn_dim_head < 1 || config.linear_attn_heads < 1 || config.ff_mult <= 0) {
    throw_usage_error("all sizes of a discriminator must be at least 1");
  }
  if (config.image_size < 4) {
    throw_usage_error(
        c10::str("image_size of a discriminator must be at least 4, but is ", config.image_size));
  }
  std::int64_t side = config.image_size;
  for (std::int64_t left = config.image_size; left >= 8; left /= 2, side /= 2) {
    if (side % 2 != 0) {
      throw_usage_error(
          c10::str("image_size of a discriminator must stay even at every downsampling, but is ",
                   config.image_size));
    }
  }
}

// Visits the arguments with plain values; from_json() and to_json() both use this list.
template <class Visit, class Config>
void plain_arguments(Config& c, Visit visit) {
  visit("image_size", c.image_size);
  visit("num_codebooks", c.num_codebooks);
  visit("codebook_size", c.codebook_size);
  visit("channels", c.channels);
  visit("init_dim", c.init_dim);
  visit("dim_cond", c.dim_cond);
  visit("dim_cond_expansion_factor", c.dim_cond_expansion_factor);
  visit("pad_mode", c.pad_mode);
  visit("lfq_entropy_loss_weight", c.lfq_entropy_loss_weight);
  visit("lfq_commitment_loss_weight", c.lfq_commitment_loss_weight);
  visit("lfq_diversity_gamma", c.lfq_diversity_gamma);
  visit("quantizer_aux_loss_weight", c.quantizer_aux_loss_weight);
  visit("use_fsq", c.use_fsq);
  visit("fsq_levels", c.fsq_levels);
  visit("attn_dim_head", c.attn_dim_head);
  visit("attn_heads", c.attn_heads);
  visit("attn_dropout", c.attn_dropout);
  visit("linear_attn_dim_head", c.linear_attn_dim_head);
  visit("linear_attn_heads", c.linear_attn_heads);
  visit("perceptual_loss_weight", c.perceptual_loss_weight);
  visit("use_gan", c.use_gan);
  visit("adversarial_loss_weight", c.adversarial_loss_weight);
  visit("grad_penalty_loss_weight", c.grad_penalty_loss_weight);
  visit("multiscale_adversarial_loss_weight", c.multiscale_adversarial_loss_weight);
  visit("separate_first_frame_encoding", c.separate_first_frame_encoding);
  visit("compat", c.compat);
}

}  // namespace

std::vector<VideoLayerSpec> parse_video_layers(const std::vector<std::string>& pieces) {
  std::vector<VideoLayerSpec> layers;
  for (const std::string& piece : pieces) {
    for (std::size_t at = 0; at < piece.size();) {
      auto run = [&](auto belongs) {
        const std::size_t begin = at;
        while (at < piece.size() && belongs(static_cast<unsigned char>(piece[at]))) ++at;
        return piece.substr(begin, at - begin);
      };
      const auto c = static_cast<unsigned char>(piece[at]);
      if (std::isalpha(c) != 0) {
        layers.push_back({run([](int x) { return std::isalpha(x) != 0 || x == '_'; })});
      } else if (std::isdigit(c) != 0 && !layers.empty() && !layers.back().size) {
        const std::string digits = run([](int x) { return std::isdigit(x) != 0; });
        if (digits.size() > 9) {
          throw_usage_error(c10::str("layers: the size ", digits, " is too large"));
        }
        layers.back().size = std::stoll(digits);
      } else if (std::string_view(" ,:()[]'\"").find(piece[at]) != std::string_view::npos) {
        ++at;
      } else {
        throw_usage_error(c10::str(
            "layers: cannot read '", piece,
            "'; write a type such as residual, or a type and a size such as compress_space:128"));
      }
    }
  }
  return layers;
}

VideoTokenizerConfig VideoTokenizerConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) throw_usage_error("the configuration is not a JSON object");
  VideoTokenizerConfig config;
  Arguments a(object, "");
  plain_arguments(config, [&](const char* name, auto& value) { a.take(name, value); });
  a.take("max_dim", config.max_dim);
  if (config.max_dim == 0) config.max_dim.reset();
  a.take_sizes("residual_conv_kernel_size", config.residual_conv_kernel_size);
  a.take_sizes("input_conv_kernel_size", config.input_conv_kernel_size);
  a.take_sizes("output_conv_kernel_size", config.output_conv_kernel_size);
  auto given = [&](const char* name) {
    auto found = object.find(name);
    return found != object.end() && !found->is_null() ? &*found : nullptr;
  };
  if (const json* layers = given("layers")) config.layers = layers_of(*layers);
  if (const json* discr = given("discr_kwargs")) {
    config.discr_kwargs = discriminator_of(*discr);
    // The default of the package's discriminator class.
    if (!discr->contains("channels")) config.discr_kwargs->channels = 3;
  }
  if (const json* several = given("multiscale_discrs")) {
    for (const json& one : *several) config.multiscale_discrs.push_back(discriminator_of(one));
  }
  // flash_attn does not change the arithmetic, so it is accepted and ignored.
  const std::set<std::string> others = {"layers", "discr_kwargs", "multiscale_discrs",
                                        "flash_attn"};
  for (const auto& [key, value] : object.items()) {
    if (!a.known_.contains(key) && !others.contains(key)) {
      throw_usage_error(c10::str("the video tokenizer has no argument ", key));
    }
  }
  config.check();
  return config;
}

std::string VideoTokenizerConfig::to_json() const {
  json object;
  plain_arguments(*this, [&](const char* name, const auto& value) { object[name] = value; });
  object["max_dim"] = max_dim ? json(*max_dim) : json();
  object["residual_conv_kernel_size"] = residual_conv_kernel_size;
  object["input_conv_kernel_size"] = input_conv_kernel_size;
  object["output_conv_kernel_size"] = output_conv_kernel_size;
  object["layers"] = json_of(layers);
  if (discr_kwargs) object["discr_kwargs"] = json_of(*discr_kwargs);
  object["multiscale_discrs"] = json::array();
  for (const auto& one : multiscale_discrs) object["multiscale_discrs"].push_back(json_of(one));
  return object.dump();
}

void VideoTokenizerConfig::check() const {
  if (image_size < 1) {
    throw_usage_error(c10::str("image_size must be at least 1, but is ", image_size));
  }
  if (channels < 1 || init_dim < 1 || (max_dim && *max_dim < 1)) {
    throw_usage_error("channels, init_dim and max_dim must be at least 1");
  }
  for (const VideoLayerSpec& layer : layers) {
    if (!layer_types.contains(layer.type)) {
      throw_usage_error(c10::str("unknown layer type ", layer.type));
    }
    if (layer.size && (!takes_size(layer.type) || *layer.size < 1)) {
      throw_usage_error(c10::str("the layer ", layer.type, " takes ",
                                 takes_size(layer.type) ? "a size of at least 1" : "no size",
                                 ", but has ", *layer.size));
    }
    if (layer.type == "consecutive_residual" && !layer.size) {
      throw_usage_error(
          R"(consecutive_residual needs a number of blocks, e.g. ("consecutive_residual", 2))");
    }
    if (layer.type.starts_with("cond_") && dim_cond < 1) {
      throw_usage_error(c10::str("dim_cond must be given for layers of type ", layer.type));
    }
  }
  if (image_size % space_factor() != 0) {
    throw_usage_error(
        c10::str("image_size must be a multiple of ", space_factor(), ", but is ", image_size));
  }
  for (const auto* kernel :
       {&residual_conv_kernel_size, &input_conv_kernel_size, &output_conv_kernel_size}) {
    if ((*kernel)[0] < 1 || (*kernel)[1] % 2 != 1 || (*kernel)[2] % 2 != 1) {
      throw_usage_error("kernel sizes of convolutions must be odd in height and width");
    }
  }
  if (!std::set<std::string>{"constant", "reflect", "replicate", "circular"}.contains(pad_mode)) {
    throw_usage_error(
        c10::str("pad_mode must be constant, reflect, replicate or circular, but is ", pad_mode));
  }
  if (use_fsq ? fsq_levels.empty() || codebook_size != 0
              : codebook_size == 0 || !fsq_levels.empty()) {
    throw_usage_error("give either codebook_size, or use_fsq and fsq_levels, but not both");
  }
  check_discriminator(discriminator());
  for (const VideoDiscriminatorConfig& one : multiscale()) {
    if (one.scale < 1 || image_size % one.scale != 0 || one.image_size != image_size / one.scale) {
      throw_usage_error(
          c10::str("the scale of a multi-scale discriminator must divide image_size (", image_size,
                   "), but is ", one.scale));
    }
    check_discriminator(one);
  }
}

std::int64_t VideoTokenizerConfig::time_factor() const {
  const auto count = std::ranges::count(layers, "compress_time", &VideoLayerSpec::type);
  return std::int64_t{1} << count;
}

std::int64_t VideoTokenizerConfig::space_factor() const {
  const auto count = std::ranges::count(layers, "compress_space", &VideoLayerSpec::type);
  return std::int64_t{1} << count;
}

std::vector<std::int64_t> VideoTokenizerConfig::layer_dims() const {
  std::vector<std::int64_t> dims;
  std::int64_t dim = init_dim;
  for (const VideoLayerSpec& layer : layers) {
    if (layer.type.starts_with("compress_")) {
      dim = layer.size.value_or(dim * 2);
      if (max_dim) dim = std::min(dim, *max_dim);
    }
    dims.push_back(dim);
  }
  return dims;
}

bool VideoTokenizerConfig::conditional() const {
  return std::ranges::any_of(
      layers, [](const VideoLayerSpec& layer) { return layer.type.starts_with("cond_"); });
}

std::int64_t VideoTokenizerConfig::expanded_cond() const {
  return static_cast<std::int64_t>(static_cast<double>(dim_cond) * dim_cond_expansion_factor);
}

VideoDiscriminatorConfig VideoTokenizerConfig::discriminator() const {
  VideoDiscriminatorConfig config = discr_kwargs.value_or(VideoDiscriminatorConfig{});
  const std::vector<std::int64_t> dims = layer_dims();
  if (config.dim == 0) config.dim = dims.empty() ? init_dim : dims.back();
  if (config.image_size == 0) config.image_size = image_size;
  if (config.channels == 0) config.channels = channels;
  return config;
}

std::vector<VideoDiscriminatorConfig> VideoTokenizerConfig::multiscale() const {
  std::vector<VideoDiscriminatorConfig> all = multiscale_discrs;
  for (VideoDiscriminatorConfig& config : all) {
    if (config.dim == 0) config.dim = init_dim;
    if (config.image_size == 0)
      config.image_size = image_size / std::max<std::int64_t>(config.scale, 1);
    if (config.channels == 0) config.channels = channels;
  }
  return all;
}

}  // namespace millrace
