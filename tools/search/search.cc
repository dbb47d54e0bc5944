// Finds the nearest rows in a cache of embeddings: captions of a sound, sounds of a text.
#include "tools/cli/command_line.h"
#include "tools/preprocess/tokens/embedding_model.h"

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/caches/cache_info.h>
#include <millrace/decoders/audio/audio.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  preprocess tokens songs/ --model mulan.9000.pt --out sounds.arrow
  preprocess tokens captions/ --medium text --model mulan.9000.pt --out texts.arrow
  search texts.arrow --model mulan.9000.pt --sound new.mp3           # texts that fit a sound
  search sounds.arrow --model mulan.9000.pt --text "a slow piano"    # sounds that fit a text
  search sounds.arrow --row 17 --top 3                               # rows similar to row 17
Prints the nearest rows, each with its cosine similarity (1: identical), its caption and the file it
was made from.
)";

struct SearchOptions {
  std::string cache, model, config, sound, text, bpe;
  std::int64_t row = -1, top = 5;
  double seconds = 0;
  int rate = 0;
  bool json = false;
};

[[noreturn]] void refuse(const std::string& why, const std::string& where = {}) {
  Error error(why);
  if (!where.empty()) error.at(where);
  throw error.kind(ErrorKind::usage);
}

// All embeddings of a cache, in memory.
class EmbeddingTable {
 public:
  explicit EmbeddingTable(const std::string& path) : rows_(path) {
    const Schema& schema = rows_.schema();
    const int at = schema.find("embedding");
    if (at < 0 || schema[at].dtype != DType::float32 || schema[at].shape.rank() != 1 ||
        !schema[at].is_fixed()) {
      refuse("has no column embedding of float32 vectors; it has: " + to_string(schema), path);
    }
    dim_ = schema[at].shape[0];
    captioned_ = schema.find("caption") >= 0;
    sources_.resize(static_cast<std::size_t>(rows_.size()));
    for_each_source(path, [&](std::int64_t row, const CacheSource& source) {
      sources_[static_cast<std::size_t>(row)] = source.name;
    });
    embeddings_.reserve(static_cast<std::size_t>(rows_.size() * dim_));
    Sample sample(schema);
    for (std::int64_t i = 0; i < rows_.size(); ++i) {
      load(i, sample);
      const auto embedding = sample["embedding"].as<const float>();
      embeddings_.insert(embeddings_.end(), embedding.begin(), embedding.end());
    }
  }

  std::int64_t size() const { return rows_.size(); }
  std::int64_t dim() const { return dim_; }
  std::span<const float> embedding(std::int64_t row) const {
    return {embeddings_.data() + row * dim_, static_cast<std::size_t>(dim_)};
  }
  std::string caption(std::int64_t row) const {
    if (!captioned_) return {};
    Sample sample(rows_.schema());
    load(row, sample);
    std::string text(sample.text("caption"));
    text.erase(text.find_last_not_of(" \t\n\v\f\r") + 1);
    return text;
  }
  const std::string& source(std::int64_t row) const {
    return sources_[static_cast<std::size_t>(row)];
  }

 private:
  void load(std::int64_t row, Sample& sample) const {
    sample.restart();
    if (Status status = rows_.load(row, {.index = row}, sample); !status.ok()) {
      throw status.error();
    }
  }

  ArrowDataset rows_;
  std::int64_t dim_ = 0;
  bool captioned_ = false;
  std::vector<float> embeddings_;
  std::vector<std::string> sources_;  // file of each row, if the cache records it
};

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? product / std::sqrt(aa * bb) : 0;
}

std::shared_ptr<const EmbeddingModel> open_model(const SearchOptions& o,
                                                 const EmbeddingTable& table) {
  if (o.model.empty()) refuse("--sound and --text need the --model that made the cache");
  auto model = open_embedding_model({.model = o.model, .config = o.config});
  if (!model) refuse("holds no model that embeds sounds and texts", o.model);
  if (model->dim() != table.dim()) {
    refuse("gives embeddings of " + std::to_string(model->dim()) + " numbers, but the cache has " +
               std::to_string(table.dim()),
           o.model);
  }
  for (const auto& [name, value] : read_cache_info(o.cache).options) {
    if (name == "weights" && value != model->hash()) {
      refuse("is not the model that made " + o.cache + ": its weights differ", o.model);
    }
  }
  return model;
}

std::vector<float> embedding_of_sound(const SearchOptions& o, const EmbeddingModel& model) {
  const int rate = o.rate > 0 ? o.rate : model.sample_rate_hz();
  if (rate == 0) refuse("the model's file does not tell the rate of its sounds; give --rate");
  AudioReader reader;
  AudioResult result;
  std::vector<float> sound;
  Status status = reader.open(o.sound);
  if (status.ok()) {
    const std::int64_t samples = o.seconds > 0 ? std::llround(o.seconds * rate) : model.samples();
    if (samples > 0) {
      sound.resize(static_cast<std::size_t>(samples));
      status =
          reader.decode({.samples = samples, .sample_rate_hz = rate, .channels = 1}, sound, result);
    } else {
      status = reader.decode_all({.sample_rate_hz = rate, .channels = 1}, sound, result);
    }
  }
  if (!status.ok()) throw status.error().at(o.sound);
  if (static_cast<std::int64_t>(sound.size()) < model.fewest_samples()) {
    throw Error("the sound is shorter than the model needs").at(o.sound);
  }
  std::vector<float> embedding(static_cast<std::size_t>(model.dim()));
  model.embed_sound(sound, embedding);
  return embedding;
}

std::vector<float> query_embedding(const SearchOptions& o, const EmbeddingTable& table) {
  const int given = (o.row >= 0 ? 1 : 0) + (o.sound.empty() ? 0 : 1) + (o.text.empty() ? 0 : 1);
  if (given != 1) refuse("give one of --sound, --text and --row");
  if (o.row >= 0) {
    if (o.row >= table.size()) {
      refuse("the cache has " + std::to_string(table.size()) + " rows, no row " +
             std::to_string(o.row));
    }
    return {table.embedding(o.row).begin(), table.embedding(o.row).end()};
  }
  const auto model = open_model(o, table);
  if (!o.sound.empty()) return embedding_of_sound(o, *model);
  std::vector<float> embedding(static_cast<std::size_t>(model->dim()));
  TextEmbedder(model, o.bpe).embed(o.text, embedding);
  return embedding;
}

int search(const SearchOptions& o) {
  const EmbeddingTable table(o.cache);
  const std::vector<float> wanted = query_embedding(o, table);
  std::vector<std::pair<double, std::int64_t>> found;
  for (std::int64_t i = 0; i < table.size(); ++i) {
    found.emplace_back(-cosine(wanted, table.embedding(i)), i);
  }
  const std::int64_t top = std::min(o.top, table.size());
  std::partial_sort(found.begin(), found.begin() + top, found.end());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::int64_t i = 0; i < top; ++i) {
    const auto [distance, row] = found[static_cast<std::size_t>(i)];
    const std::string caption = table.caption(row), source = table.source(row);
    if (o.json) {
      list.push_back(
          {{"row", row}, {"cosine", -distance}, {"caption", caption}, {"source", source}});
    } else {
      std::printf("%7.4f  %s  (%s)\n", -distance, caption.c_str(), source.c_str());
    }
  }
  if (o.json) {
    std::printf("%s\n",
                list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("search",
                   "Finds the rows of a cache of embeddings that are nearest to a sound, "
                   "a text or another row.",
                   examples);
  SearchOptions o;
  const Options options = line.options();
  options.add("cache", o.cache, "cache made by preprocess tokens with a model of train_mulan")
      .required()
      .type_name("FILE");
  options.add("--model", o.model, "checkpoint that made the cache, for --sound and --text")
      .type_name("FILE");
  options
      .add("--model-config", o.config,
           "arguments of the model as TOML or JSON, if its file does not have them")
      .type_name("FILE");
  options.add("--sound", o.sound, "sound file to find the nearest rows of").type_name("FILE");
  options.add("--text", o.text, "text to find the nearest rows of");
  options.add("--row", o.row, "row of the cache to find the nearest rows of, from 0")
      .non_negative()
      .default_text("");
  options.add("--top", o.top, "number of nearest rows to print").positive();
  options
      .add("--seconds", o.seconds, "seconds of the sound, from its start; default: as in training")
      .positive()
      .default_text("");
  options.add("--rate", o.rate, "sample rate of the sound in Hz; default: as in training")
      .range(1, 384'000)
      .default_text("");
  options
      .add("--bpe", o.bpe,
           "BPE merges file that the model was trained with; default: bytes as tokens")
      .type_name("FILE");
  options.flag("--json", o.json, "print the result as a JSON list");
  return line.run(argc, argv, [&] { return search(o); });
}
