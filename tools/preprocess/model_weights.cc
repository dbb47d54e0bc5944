#include "tools/preprocess/model_weights.h"

#include <millrace/pipeline/error.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

using nlohmann::json;

Dict under(const Dict& all, std::string_view prefix) {
  Dict found;
  for (const auto& [key, value] : all) {
    if (!key.is<std::string>() || !key.as_string().starts_with(prefix)) continue;
    found.set(key.as_string().substr(prefix.size()), value);
  }
  return found;
}

const Dict* dict_at(const Dict& all, std::string_view name) {
  const Value* found = all.find(name);
  return found != nullptr && found->is<Dict>() ? &found->as_dict() : nullptr;
}

// The moving average: a file of its own, or in a checkpoint.
Dict average_in(const Dict& all) {
  for (const char* name : {"ema_model", "ema"}) {
    if (const Dict* state = dict_at(all, name)) return under(*state, "ema_model.");
  }
  return under(all, "ema_model.");
}

Dict trained_in(const Dict& all) {
  for (const char* name : {"model", "model_state_dict"}) {
    if (const Dict* state = dict_at(all, name)) return *state;
  }
  return average_in(all).empty() ? all : under(all, "online_model.");
}

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw Error("cannot be read").at(path.string()).kind(ErrorKind::usage);
  return text.str();
}

json value_of(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  return parsed.is_discarded() ? json(text) : parsed;
}

// A list of layers however it is written: words, each with its number behind it if it has one.
json layers_of(const std::vector<std::string>& inputs) {
  json layers = json::array();
  std::string word;
  auto end_word = [&] {
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      json& last = layers.empty() ? layers.emplace_back("") : layers.back();
      if (word.size() < 10) last = {last, std::stoll(word)};
    } else if (!word.empty()) {
      layers.push_back(word);
    }
    word.clear();
  };
  for (const std::string& input : inputs) {
    for (char c : input) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += c;
      } else {
        end_word();
      }
    }
    end_word();
  }
  return layers;
}

// The keys of a trainer's config.toml are its flags: those that are arguments of the model are
// taken, under the model's names.
json arguments_in(const std::string& text, const json& defaults) {
  std::istringstream in(text);
  json found = json::object();
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(in)) {
    std::string name = item.name;
    std::ranges::replace(name, '-', '_');
    if (name == "layers" && defaults.contains(name) && defaults[name].is_array()) {
      found[name] = layers_of(item.inputs);
      continue;
    }
    json value = json::array();
    for (const std::string& input : item.inputs) value.push_back(value_of(input));
    auto put = [&](json& to, const std::string& key, const json& like) {
      if (value.size() == 1 && !(like.is_array() && value[0].is_number())) {
        to[key] = value[0];
      } else if (!value.empty()) {
        to[key] = value;
      }
    };
    if (name == "max_dim" && item.inputs == std::vector<std::string>{"0"}) continue;  // no limit
    if (defaults.contains(name) || name == "max_dim") {
      put(found, name, defaults.value(name, json()));
      continue;
    }
    for (const char* group : {"lfq", "vq"}) {
      const std::string whole = std::string(group) + "_kwargs", prefix = std::string(group) + "_";
      if (!name.starts_with(prefix) || !defaults.contains(whole)) continue;
      const std::string key = name.substr(prefix.size());
      if (defaults[whole].contains(key)) put(found[whole], key, defaults[whole][key]);
    }
  }
  return found;
}

std::string configuration_in(const std::filesystem::path& path, const json& defaults) {
  const std::string text = read_whole(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return text;
  try {
    return arguments_in(text, defaults).dump();
  } catch (const CLI::Error& error) {
    throw Error(std::string("cannot be read as TOML (") + error.what() + ")")
        .at(path.string())
        .kind(ErrorKind::usage);
  }
}

}  // namespace

Dict model_weights(const Value& saved, const TokenModelOptions& options) {
  auto refuse = [&](const std::string& why) {
    throw Error(why).at(options.model.string()).kind(ErrorKind::usage);
  };
  if (!saved.is<Dict>()) refuse(std::string("holds no weights, but ") + saved.kind());
  const Dict& all = saved.as_dict();
  Dict average = average_in(all), trained = trained_in(all);
  if (options.weights == "ema" && average.empty()) {
    refuse("holds no moving average; --weights model takes the weights themselves");
  }
  if (options.weights == "model" && trained.empty()) {
    refuse("holds the moving average alone; --weights ema takes it");
  }
  const bool ema = options.weights == "ema" || (options.weights.empty() && !average.empty());
  return ema ? average : trained;
}

std::string model_configuration(const Value& saved, const TokenModelOptions& options,
                                const std::string& defaults) {
  const json all = json::parse(defaults);
  if (!options.config.empty()) return configuration_in(options.config, all);
  const Value* inside = saved.as_dict().find("config");
  if (inside != nullptr && inside->is<std::string>()) return inside->as_string();
  const std::filesystem::path beside = options.model.parent_path() / "config.toml";
  if (std::filesystem::exists(beside)) return configuration_in(beside, all);
  throw Error("holds the weights but not the configuration of its model")
      .at(options.model.string())
      .kind(ErrorKind::usage)
      .hint(
          "Give the model's arguments with --model-config FILE, as TOML (the config.toml of the "
          "run) or JSON");
}

}  // namespace millrace
