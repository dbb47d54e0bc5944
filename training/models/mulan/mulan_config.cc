#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/module/json_arguments.h>
#include <millrace/training/models/mulan/mulan_config.h>

#include <algorithm>
#include <set>

#include <c10/util/StringUtil.h>

namespace millrace {

using nlohmann::json;

namespace {

template <class Config, class Visit>
void transformer_arguments(Config& c, Visit visit) {
  visit("dim", c.dim);
  visit("depth", c.depth);
  visit("dim_head", c.dim_head);
  visit("heads", c.heads);
  visit("attn_dropout", c.attn_dropout);
  visit("ff_mult", c.ff_mult);
  visit("ff_dropout", c.ff_dropout);
}

// Visits the arguments with plain values; from_json() and to_json() both use this list.
template <class Config, class Visit>
void audio_arguments(Config& c, Visit visit) {
  transformer_arguments(c, visit);
  visit("accept_spec", c.accept_spec);
  visit("accept_spec_time_first", c.accept_spec_time_first);
  visit("spec_n_fft", c.spec_n_fft);
  visit("spec_power", c.spec_power);
  visit("spec_win_length", c.spec_win_length);
  visit("spec_pad", c.spec_pad);
  visit("spec_center", c.spec_center);
  visit("spec_pad_mode", c.spec_pad_mode);
  visit("spec_aug_stretch_factor", c.spec_aug_stretch_factor);
  visit("spec_aug_freq_mask", c.spec_aug_freq_mask);
  visit("spec_aug_time_mask", c.spec_aug_time_mask);
  visit("patch_dropout_prob", c.patch_dropout_prob);
}

template <class Config, class Visit>
void text_arguments(Config& c, Visit visit) {
  transformer_arguments(c, visit);
  visit("num_tokens", c.num_tokens);
  visit("max_seq_len", c.max_seq_len);
  visit("pad_id", c.pad_id);
}

template <class Config, class Visit>
void plain_arguments(Config& c, Visit visit) {
  visit("dim_latent", c.dim_latent);
  visit("decoupled_contrastive_learning", c.decoupled_contrastive_learning);
  visit("hierarchical_contrastive_loss", c.hierarchical_contrastive_loss);
  visit("sigmoid_contrastive_loss", c.sigmoid_contrastive_loss);
  visit("spec_augment", c.spec_augment);
}

void refuse_unknown(const json& object, const std::set<std::string>& known, const char* whose) {
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) throw_usage_error(c10::str(whose, " has no argument ", key));
  }
}

const json& part_of(const json& object, const char* name) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_object()) {
    throw_usage_error(c10::str("MuLaN's configuration must have an object \"", name, "\""));
  }
  return *found;
}

MulanAudioConfig audio_of(const json& object) {
  MulanAudioConfig config;
  Arguments a(object, "");
  audio_arguments(config, [&](const char* name, auto& value) { a.take(name, value); });
  a.take("spec_hop_length", config.spec_hop_length);
  auto size = object.find("patch_size");
  if (size != object.end() && size->is_number()) {
    std::int64_t one = 0;
    a.take("patch_size", one);
    config.patch_size.fill(one);
  } else {
    a.take("patch_size", config.patch_size);
  }
  refuse_unknown(object, a.known_, "the audio transformer");
  return config;
}

MulanTextConfig text_of(const json& object) {
  MulanTextConfig config;
  Arguments a(object, "");
  text_arguments(config, [&](const char* name, auto& value) { a.take(name, value); });
  refuse_unknown(object, a.known_, "the text transformer");
  return config;
}

void check_transformer(const MulanTransformerConfig& c, const char* whose) {
  if (c.dim < 1 || c.depth < 1 || c.dim_head < 1 || c.heads < 1 || c.ff_mult <= 0) {
    throw_usage_error(
        c10::str("the ", whose,
                 " transformer's dim, depth, dim_head, heads and ff_mult must be positive, "
                 "but are ",
                 c.dim, ", ", c.depth, ", ", c.dim_head, ", ", c.heads, " and ", c.ff_mult));
  }
  for (double probability : {c.attn_dropout, c.ff_dropout}) {
    if (!(probability >= 0 && probability < 1)) {
      throw_usage_error(c10::str("the dropout of the ", whose,
                                 " transformer must be at least 0 and below 1, but is ",
                                 probability));
    }
  }
}

void check_audio(const MulanAudioConfig& c) {
  check_transformer(c, "audio");
  if (c.dim % 4 != 0 || c.dim < 8) {
    throw_usage_error(c10::str(
        "the audio transformer's dim must be a multiple of 4 and at least 8, but is ", c.dim));
  }
  if (c.patch_size[0] < 1 || c.patch_size[1] < 1) {
    throw_usage_error("patch_size must have two values of at least 1");
  }
  if (!(c.patch_dropout_prob >= 0 && c.patch_dropout_prob < 1)) {
    throw_usage_error(c10::str("patch_dropout_prob must be at least 0 and below 1, but is ",
                               c.patch_dropout_prob));
  }
  if (c.spec_aug_freq_mask < 0 || c.spec_aug_time_mask < 0) {
    throw_usage_error("spec_aug_freq_mask and spec_aug_time_mask must be at least 0");
  }
  if (c.spec_win_length < 1 || c.spec_win_length > c.spec_n_fft || c.hop_length() < 1 ||
      c.spec_pad < 0 || !(c.spec_power > 0)) {
    throw_usage_error(c10::str(
        "spec_win_length must be 1 to spec_n_fft (", c.spec_n_fft,
        "), spec_hop_length at least 1, spec_power above 0 and spec_pad at least 0, but they are ",
        c.spec_win_length, ", ", c.hop_length(), ", ", c.spec_power, " and ", c.spec_pad));
  }
  if (!std::set<std::string>{"reflect", "constant", "replicate", "circular"}.contains(
          c.spec_pad_mode)) {
    throw_usage_error(
        c10::str("spec_pad_mode must be reflect, constant, replicate or circular, but is ",
                 c.spec_pad_mode));
  }
  if (!c.accept_spec && c.frequencies() < c.patch_size[0]) {
    throw_usage_error(c10::str("a spectrogram of spec_n_fft ", c.spec_n_fft, " has ",
                               c.frequencies(), " frequencies, fewer than the height of a patch (",
                               c.patch_size[0], ")"));
  }
}

}  // namespace

std::int64_t MulanAudioConfig::times(std::int64_t samples) const {
  const std::int64_t padded = samples + 2 * spec_pad + (spec_center ? spec_n_fft / 2 * 2 : 0);
  return padded < spec_n_fft ? 0 : 1 + (padded - spec_n_fft) / hop_length();
}

std::int64_t MulanAudioConfig::fewest_samples() const {
  const std::int64_t padding = 2 * spec_pad + (spec_center ? spec_n_fft / 2 * 2 : 0);
  const std::int64_t enough = (patch_size[1] - 1) * hop_length() + spec_n_fft - padding;
  // Reflection padding needs more samples than it reflects.
  const std::int64_t reflected = spec_center ? spec_n_fft / 2 + 1 - 2 * spec_pad : 1;
  return std::max({enough, reflected, std::int64_t{1}});
}

MulanConfig MulanConfig::from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) throw_usage_error("the configuration is not a JSON object");
  MulanConfig config;
  Arguments a(object, "");
  plain_arguments(config, [&](const char* name, auto& value) { a.take(name, value); });
  a.take("hierarchical_contrastive_loss_layers", config.hierarchical_contrastive_loss_layers);
  config.audio = audio_of(part_of(object, "audio"));
  config.text = text_of(part_of(object, "text"));
  a.known_.insert({"audio", "text"});
  refuse_unknown(object, a.known_, "MuLaN");
  config.check();
  return config;
}

std::string MulanConfig::to_json() const {
  json object, audio_object, text_object;
  auto into = [](json& to) {
    return [&to](const char* name, const auto& value) { to[name] = value; };
  };
  plain_arguments(*this, into(object));
  audio_arguments(audio, into(audio_object));
  text_arguments(text, into(text_object));
  audio_object["patch_size"] = audio.patch_size;
  if (audio.spec_hop_length) audio_object["spec_hop_length"] = *audio.spec_hop_length;
  if (hierarchical_contrastive_loss_layers) {
    object["hierarchical_contrastive_loss_layers"] = *hierarchical_contrastive_loss_layers;
  }
  object["audio"] = std::move(audio_object);
  object["text"] = std::move(text_object);
  return object.dump();
}

std::int64_t MulanConfig::contrasted_layers() const {
  if (!hierarchical_contrastive_loss) return 0;
  return hierarchical_contrastive_loss_layers.value_or(std::min(audio.depth, text.depth) - 1);
}

void MulanConfig::check() const {
  check_audio(audio);
  check_transformer(text, "text");
  if (text.num_tokens < 1 || text.max_seq_len < 1 || dim_latent < 1) {
    throw_usage_error("num_tokens, max_seq_len and dim_latent must be at least 1");
  }
  if (!hierarchical_contrastive_loss) return;
  const std::int64_t most = std::min(audio.depth, text.depth) - 1;
  if (contrasted_layers() < 1 || contrasted_layers() > most) {
    throw_usage_error(c10::str("hierarchical_contrastive_loss_layers must be 1 to ", most,
                               " layers, one less than the shallower transformer has, but is ",
                               contrasted_layers()));
  }
}

}  // namespace millrace
