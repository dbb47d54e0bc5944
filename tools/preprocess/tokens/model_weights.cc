#include "tools/preprocess/tokens/model_weights.h"

#include "tools/cli/toml.h"
#include "tools/preprocess/tokens/weights_hash.h"

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/models/module/module_tensors.h>

#include <algorithm>
#include <sstream>

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

// The moving average, from a checkpoint or from a file of its own.
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

std::string text_of(const std::filesystem::path& path) {
  try {
    const MappedFile file(path);
    return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
  } catch (Error& error) {
    error.kind(ErrorKind::usage);
    throw;
  }
}

json value_of(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  return parsed.is_discarded() ? json(text) : parsed;
}

// The keys of a trainer's config.toml are its flags. Takes those that are arguments of the model,
// under the model's names.
json arguments_in(const std::string& text, const json& defaults) {
  std::istringstream in(text);
  json found = json::object();
  for (const TomlItem& item : read_toml(in)) {
    std::string name = item.name;
    std::ranges::replace(name, '-', '_');
    if (name == "layers" && defaults.contains(name) && defaults[name].is_array()) {
      found[name] = item.values;  // the model parses every notation of layers
      continue;
    }
    json value = json::array();
    for (const std::string& text : item.values) value.push_back(value_of(text));
    auto put = [&](json& to, const std::string& key, const json& like) {
      if (value.size() == 1 && !(like.is_array() && value[0].is_number())) {
        to[key] = value[0];
      } else if (!value.empty()) {
        to[key] = value;
      }
    };
    if (defaults.contains(name)) {
      put(found, name, defaults[name]);
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
  const std::string text = text_of(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return text;
  try {
    return arguments_in(text, defaults).dump();
  } catch (const Error& error) {
    throw Error(std::string("cannot be read as TOML (") + error.what() + ")")
        .at(path.string())
        .kind(ErrorKind::usage);
  }
}

bool any_of(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](const auto& prefix) { return name.starts_with(prefix); });
}

json json_of(const Value& value) {
  if (value.is<bool>()) return value.as_bool();
  if (value.is<std::int64_t>()) return value.as_int();
  if (value.is<double>()) return value.as_double();
  if (value.is<std::string>()) return value.as_string();
  if (value.is<List>() || value.is<Tuple>()) {
    json list = json::array();
    for (const Value& item : value.as_list()) list.push_back(json_of(item));
    return list;
  }
  if (!value.is<Dict>()) return nullptr;
  json object = json::object();
  for (const auto& [key, item] : value.as_dict()) object[key.as_string()] = json_of(item);
  return object;
}

// The Python package stores a pickle of (arguments, named arguments).
std::string pickled_configuration(const std::string& pickle, const TokenModelOptions& options) {
  try {
    const Value saved = read_pickle(pickle);
    const std::vector<Value>& both = saved.as_list();
    if (both.size() == 2 && both[0].as_list().empty()) return json_of(both[1]).dump();
  } catch (const Error&) {  // reported below
  }
  throw Error(
      "has a configuration that cannot be read: arguments without names, or no plain values")
      .at(options.model.string())
      .kind(ErrorKind::usage)
      .hint("Give the model's arguments with --model-config FILE, as TOML or JSON");
}

}  // namespace

Value read_model(const std::filesystem::path& path) {
  try {
    return read_checkpoint(path);
  } catch (Error& error) {
    error.kind(ErrorKind::usage);
    throw;
  }
}

std::string load_parts(const Dict& weights, const torch::nn::Module& model,
                       const std::vector<std::string>& parts, const std::string& configuration,
                       const std::filesystem::path& path) {
  NamedTensors wanted;
  for (const auto& [name, tensor] : state_tensors(model)) {
    if (any_of(name, parts)) wanted.emplace_back(name, tensor);
  }
  Dict given;
  for (const auto& [key, value] : weights) {
    if (key.is<std::string>() && any_of(key.as_string(), parts)) given.set(key, value);
  }
  copy_tensors(given, wanted, path.string());
  return weights_hash(wanted, configuration);
}

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

void check_trained(const Value& saved, const Dict& weights, const std::filesystem::path& path) {
  auto refuse = [&](const std::string& why) {
    throw Error(why + ": the model is not trained")
        .at(path.string())
        .kind(ErrorKind::usage)
        .hint("Give a later checkpoint, or train the model first");
  };
  // Only checkpoints of Millrace have "loader". A Python trainer may count its first step as 0.
  const Dict& all = saved.as_dict();
  const Value* step = all.find("step");
  if (all.contains("loader") && step != nullptr && step->is<std::int64_t>() &&
      step->as_int() == 0) {
    refuse("is a checkpoint of step 0");
  }
  for (const auto& [key, value] : weights) {
    if (!key.is<std::string>() || !key.as_string().ends_with("_codebook.initted")) continue;
    if (as_tensor(value).eq(0).any().item<bool>()) refuse("its codebook was never initialised");
  }
}

std::string model_configuration(const Value& saved, const TokenModelOptions& options,
                                const std::string& defaults) {
  const json all = json::parse(defaults);
  if (!options.config.empty()) return configuration_in(options.config, all);
  const Value* inside = saved.as_dict().find("config");
  if (inside != nullptr && inside->is<std::string>()) return inside->as_string();
  if (inside != nullptr && inside->is<PickleBytes>()) {
    return pickled_configuration(inside->as_bytes(), options);
  }
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
