// One run of `preprocess`: the samples of one medium, and how the cache is written.
#pragma once

#include "tools/cli/options.h"

#include <millrace/datasets/caches/cache_info.h>
#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

// The options that every subcommand has.
struct RunOptions {
  std::filesystem::path out;
  std::string format;   // npy, raw or arrow; empty: by the name's ending
  bool raw = false;     // short for format = raw
  int jobs = 0;         // 0: one per core
  std::string shard;    // "i/n"
  bool resume = false;  // the default
  bool fresh = false;
  std::string on_error = "skip";
  std::int64_t max_errors = -1;
  std::int64_t limit = -1;
  std::string compress;  // "zstd:3"
  std::int64_t shard_rows = 0;
  std::string split;  // "train=0.95,valid=0.05"
  std::uint64_t seed = 42;
  bool json = false, dry_run = false, quiet = false;
  std::string trace, graph;
};

void declare_run_options(const Options& options, RunOptions& values);

// The samples of a medium.
struct Job {
  std::string what;  // "images", for messages
  AnyDataset data;
  // The file of a sample.
  std::function<CacheSource(std::int64_t index)> source;
  // Every option that changes the content of a row. A cache with other values is not resumed.
  std::map<std::string, std::string> options;
  // The one field that .npy and raw files hold. Other numeric fields are left out there; a text
  // field is an error.
  std::string main_field{};
  std::string text_hint{};
  std::int64_t varying_shard_rows = 0;  // files per shard where rows vary in size
  std::vector<std::string> binary{};    // fields that hold files as they are
  bool slow_rows = false;  // made by a model: small shards, so that a killed run loses little
};

// One per subcommand: declares its own flags, and makes the job once they are parsed.
class Medium {
 public:
  virtual ~Medium() = default;
  virtual const char* name() const = 0;
  virtual const char* about() const = 0;
  virtual const char* examples() const = 0;
  virtual void declare(const Options& options) = 0;
  virtual Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) = 0;
};

std::unique_ptr<Medium> images_medium();
std::unique_ptr<Medium> videos_medium();
std::unique_ptr<Medium> gifs_medium();
std::unique_ptr<Medium> meshes_medium();
std::unique_ptr<Medium> audio_medium();
std::unique_ptr<Medium> text_medium();
std::unique_ptr<Medium> tokens_medium();

// Writes the cache, or this process's part of it. Returns the exit code.
int run_job(const Job& job, const RunOptions& options, const std::shared_ptr<Pool>& pool);
// Prints what would be done. Returns the exit code.
int dry_run(const Job& job, const RunOptions& options);

}  // namespace millrace
