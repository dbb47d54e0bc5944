// The files that a run writes: one, or one for each part of --split. Shards have consecutive
// numbers over all files, so that claims need not know about files.
#pragma once

#include "tools/preprocess/job.h"

#include <millrace/datasets/caches/cache_writer.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

// "train=0.95,valid=0.05"
struct SplitPart {
  std::string name;
  double fraction = 1;
};
std::vector<SplitPart> parse_split(const std::string& text);
// photos.npy -> photos.train.npy
std::filesystem::path part_path(const std::filesystem::path& out, const std::string& part);

// From --format, --raw or the ending of --out.
CacheFormat chosen_format(const RunOptions& options);

class Targets {
 public:
  // Reads the list of sources and finds the shards that exist. Writes nothing if `dry`.
  Targets(const Job& job, const RunOptions& options, const Schema& schema, bool dry);

  struct Target {
    std::filesystem::path path;
    std::string part;  // empty without a split
    std::int64_t sources = 0;
    std::vector<std::int64_t> indices{};  // of the data set; empty: 0..sources-1
    std::int64_t first_shard = 0;         // its first shard among those of all targets
    std::optional<CacheWriter> writer{};  // none if dry

    std::int64_t index(std::int64_t source) const {
      return indices.empty() ? source : indices[static_cast<std::size_t>(source)];
    }
  };
  std::vector<Target>& all() { return targets_; }

  std::int64_t sources() const;
  std::int64_t shards() const;
  bool complete() const;
  // Reads the folder again, so that shards of other processes count.
  std::vector<std::int64_t> missing() const;
  // The target of a shard, and the number of the shard in that target.
  std::pair<Target*, std::int64_t> find(std::int64_t shard);

 private:
  std::vector<Target> targets_;
};

}  // namespace millrace
