// Every member of every model configuration survives to_json() and from_json(). The lists of
// members below are compared with the headers, so that a new member cannot be forgotten.

#include "tests/training/models/config_members.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::config_round_trip {

template <class T>
concept Struct = requires {
  Members<T>::names;
};

template <Struct T>
void each_member(T& value, auto visit) {
  if constexpr (std::derived_from<T, MulanTransformerConfig> &&
                !std::same_as<T, MulanTransformerConfig>) {
    Members<MulanTransformerConfig>::each(value, visit);
  }
  Members<T>::each(value, visit);
}

// ---- a configuration as text, member by member

using Text = std::map<std::string, std::string>;

template <class T>
void describe(const T& value, const std::string& name, Text& text) {
  if constexpr (Struct<T>) {
    each_member(const_cast<T&>(value),
                [&](const char* member, auto& m) { describe(m, name + "." + member, text); });
  } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
    std::ostringstream out;
    out.precision(17);
    out << value;
    text[name] = out.str();
  } else if constexpr (requires { value.has_value(); }) {
    text[name] = value.has_value() ? "given" : "absent";
    if (value.has_value()) describe(*value, name + ".value", text);
  } else {
    text[name] = std::to_string(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      const typename T::value_type item = value[i];
      describe(item, name + "[" + std::to_string(i) + "]", text);
    }
  }
}

// ---- random other values of a member

template <class T>
void vary(T& value, std::mt19937& random) {
  const auto pick = [&](auto... options) {
    const std::array all{options...};
    return all[random() % all.size()];
  };
  if constexpr (Struct<T>) {
    std::size_t count = 0, at = 0;
    each_member(value, [&](const char*, auto&) { ++count; });
    const std::size_t chosen = random() % count;
    each_member(value, [&](const char*, auto& m) {
      if (at++ == chosen) vary(m, random);
    });
  } else if constexpr (std::same_as<T, bool>) {
    value = !value;
  } else if constexpr (std::integral<T>) {
    value = static_cast<T>(pick(value + 1, value + 2, value * 2, value * 4, value / 2, value - 1));
  } else if constexpr (std::floating_point<T>) {
    value = pick(value + 0.125, value * 0.5 + 0.01, value * 2, 1.0 / 3);
  } else if constexpr (std::same_as<T, std::string>) {
    value = pick("sum", "mean", "reflect", "constant", "replicate", "circular", "residual",
                 "attend_time", "{}");
  } else if constexpr (requires { value.has_value(); }) {
    if (value.has_value() && random() % 2 == 0) {
      value.reset();
    } else {
      if (!value.has_value()) value.emplace();
      vary(*value, random);
    }
  } else if constexpr (requires { value.push_back(value.front()); }) {
    if (value.empty() || random() % 3 == 0) {
      value.push_back(value.empty() ? typename T::value_type{} : typename T::value_type(value[0]));
    } else if (value.size() > 1 && random() % 3 == 0) {
      value.pop_back();
    }
    if (random() % 2 == 0 && !value.empty()) {
      typename T::value_type item = value[random() % value.size()];
      vary(item, random);
      value[random() % value.size()] = item;
    }
  } else {  // an array
    vary(value[random() % value.size()], random);
  }
}

// Only valid configurations are compared, because from_json() refuses others.
template <class Config>
bool fits(const Config& config) {
  try {
    config.check();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

template <class Config>
void expect_round_trip(const Config& config, const std::string& what) {
  Text before, after;
  describe(config, "config", before);
  const std::string json = config.to_json();
  describe(Config::from_json(json), "config", after);
  EXPECT_EQ(before, after) << what << " is lost in " << json;
}

// Restores members that the model computes from other members: they are not saved.
void derive(auto&) {}
void derive(VqganConfig& config) {
  config.vq.codebook_size = VectorQuantizerOptions{}.codebook_size;
}

// `autoencoder` is a configuration in JSON, so a random string is not valid.
void derive(MeshTransformerConfig& config) {
  if (!config.autoencoder.empty()) config.autoencoder = MeshAutoencoderConfig{}.to_json();
}

template <class Config>
void vary_member(Config& config, const std::string& chosen, std::mt19937& random) {
  each_member(config, [&](const std::string& name, auto& m) {
    if (name == chosen) vary(m, random);
  });
  derive(config);
}

// Tries random values of one member. Returns the number of valid configurations compared.
template <class Config>
int try_values(const Config& base, const std::string& name, std::mt19937& random) {
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    Config config = base;
    Text before, after;
    describe(config, "config", before);
    vary_member(config, name, random);
    describe(config, "config", after);
    if (before == after || !fits(config)) continue;
    expect_round_trip(config, name);
    ++compared;
  }
  return compared;
}

// Some members are valid only together with others. For those, two bases have different values.
template <class Config>
bool differ(const Config& one, const Config& other, const std::string& name) {
  auto text_of = [&](const Config& config) {
    Text text;
    each_member(const_cast<Config&>(config), [&](const std::string& member, auto& m) {
      if (member == name) describe(m, name, text);
    });
    return text;
  };
  return text_of(one) != text_of(other);
}

// Changes each member alone, starting from each of `bases`; then several members at once.
template <class Config>
void survives(const std::vector<Config>& bases) {
  std::mt19937 random(7);
  std::vector<std::string> names;
  Config shape = bases[0];
  each_member(shape, [&](const char* name, auto&) { names.emplace_back(name); });
  for (const Config& base : bases) {
    ASSERT_TRUE(fits(base));
    expect_round_trip(base, "the base");
  }
  for (const std::string& name : names) {
    int compared = 0;
    for (const Config& base : bases) {
      compared += try_values(base, name, random) + (differ(base, bases[0], name) ? 1 : 0);
    }
    EXPECT_GT(compared, 0) << "no other value of " << name << " fits the rest";
    if (::testing::Test::HasFailure()) return;
  }
  for (int round = 0; round < 100; ++round) {
    Config config = bases[random() % bases.size()];
    for (int changes = 0; changes < 6; ++changes) {
      Config changed = config;
      vary_member(changed, names[random() % names.size()], random);
      if (fits(changed)) config = changed;
    }
    expect_round_trip(config, "one of several members");
  }
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfTheVqgan) {
  survives<VqganConfig>({{.dim = 32, .codebook_size = 256},
                         {.dim = 32, .codebook_size = 256, .layer_mults = {1, 2, 2, 4}}});
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfNuwasVqgan) {
  survives<NuwaVqganConfig>(
      {{.dim = 32, .image_size = 64}, {.dim = 32, .image_size = 64, .layer_mults = {1, 2, 2, 4}}});
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfNuwa) {
  survives<NuwaConfig>({{.dim = 64, .vae = {.dim = 32, .image_size = 64}}});
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfTheVideoTokenizer) {
  survives<VideoTokenizerConfig>({{.image_size = 32, .codebook_size = 64},
                                  {.image_size = 32, .use_fsq = true, .fsq_levels = {8, 5, 5}}});
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfMulan) {
  MulanConfig config;
  config.audio.dim = 32, config.audio.depth = 4;
  config.text.dim = 32, config.text.depth = 4;
  survives<MulanConfig>({config});
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfTheMeshAutoencoder) {
  survives<MeshAutoencoderConfig>({{}});
}

TEST(ConfigRoundTrip, KeepsEveryMemberOfTheMeshTransformer) {
  survives<MeshTransformerConfig>(
      {{},
       {.max_seq_len = 24 * 100},
       {.condition_on_text = true, .text_encoder = TextEncoderConfig{}}});
}

// ---- comparison of the lists above with the headers

std::vector<std::string> split(std::string list) {
  std::ranges::replace(list, ',', ' ');
  std::istringstream in(list);
  return {std::istream_iterator<std::string>(in), {}};
}

// Names of the data members between "struct NAME" and "};", as the header declares them.
std::set<std::string> declared(const std::string& source, const std::string& name) {
  const std::size_t begin = source.find("\nstruct " + name + " ");
  if (begin == std::string::npos) return {};
  std::string body = source.substr(begin, source.find("\n};", begin) - begin);
  body = body.substr(body.find('{') + 1);
  body = std::regex_replace(body, std::regex("//[^\n]*"), "");
  for (std::string before; before != body;) {  // removes initialisers and function bodies
    before = body;
    body = std::regex_replace(body, std::regex(R"(\([^()]*\)( const)?\s*\{[^{}]*\})"), "();");
    body = std::regex_replace(body, std::regex(R"(\{[^{}]*\})"), "");
    body = std::regex_replace(body, std::regex(R"(<[^<>]*>)"), "");
  }
  std::set<std::string> names;
  std::istringstream statements(body);
  for (std::string statement; std::getline(statements, statement, ';');) {
    if (statement.find('(') != std::string::npos) continue;
    std::istringstream declarators(statement);
    for (std::string one; std::getline(declarators, one, ',');) {
      const std::vector<std::string> words = split(one.substr(0, one.find('=')));
      if (!words.empty() && words[0] != "template") names.insert(words.back());
    }
  }
  return names;
}

std::string all_headers() {
  std::string text;
  const auto models = std::filesystem::path(MILLRACE_SOURCE_DIR) / "training/models";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream in(entry.path());
    text.append("\n").append(std::istreambuf_iterator<char>(in), {});
  }
  return text;
}

template <class T>
void expect_listed(const std::string& source, const std::string& name,
                   std::set<std::string> elsewhere = {}) {
  std::set<std::string> listed = std::move(elsewhere);
  for (const std::string& member : split(Members<T>::names)) listed.insert(member);
  EXPECT_EQ(declared(source, name), listed) << name;
}

TEST(ConfigRoundTrip, ListsEveryMemberThatTheHeadersDeclare) {
  const std::string source = all_headers();
  // The model sets these from its other arguments. factored_entropies changes only how sums are
  // computed, not their values.
  expect_listed<VectorQuantizerOptions>(source, "VectorQuantizerOptions", {"dim"});
  expect_listed<LfqOptions>(source, "LfqOptions", {"dim", "codebook_size", "factored_entropies"});
  expect_listed<VqganConfig>(source, "VqganConfig");
  expect_listed<NuwaVqganConfig>(source, "NuwaVqganConfig");
  expect_listed<NuwaConfig>(source, "NuwaConfig");
  expect_listed<VideoLayerSpec>(source, "VideoLayerSpec");
  expect_listed<VideoDiscriminatorConfig>(source, "VideoDiscriminatorConfig");
  expect_listed<VideoTokenizerConfig>(source, "VideoTokenizerConfig");
  expect_listed<MulanTransformerConfig>(source, "MulanTransformerConfig");
  expect_listed<MulanAudioConfig>(source, "MulanAudioConfig");
  expect_listed<MulanTextConfig>(source, "MulanTextConfig");
  expect_listed<MulanConfig>(source, "MulanConfig");
  expect_listed<SageConvConfig>(source, "SageConvConfig");
  expect_listed<LocalAttentionConfig>(source, "LocalAttentionConfig");
  expect_listed<LinearAttentionConfig>(source, "LinearAttentionConfig");
  expect_listed<ResidualConfig>(source, "ResidualConfig");
  expect_listed<ResidualLfqConfig>(source, "ResidualLfqConfig");
  expect_listed<ResidualVqConfig>(source, "ResidualVqConfig");
  expect_listed<MeshAutoencoderConfig>(source, "MeshAutoencoderConfig");
  expect_listed<DecoderArguments>(source, "DecoderArguments");
  expect_listed<TextEncoderConfig>(source, "TextEncoderConfig");
  expect_listed<MeshTransformerConfig>(source, "MeshTransformerConfig");
}

}  // namespace millrace::config_round_trip
