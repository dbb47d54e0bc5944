// Summary of a run as text and as JSON: counts, failures by reason, throughput, what limited it,
// and peak memory.
#pragma once

#include "tools/preprocess/shards/targets.h"

#include <millrace/pipeline/loader/stats.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace millrace {

class Summary {
 public:
  Summary();

  // Statistics of the loaders of this run.
  void add(const LoaderStats& stats);
  void add_failure(const std::string& reason);

  std::int64_t read_items = 0;  // rows and failures of this run
  std::int64_t read_bytes = 0;  // size of their files
  std::int64_t failures = 0;    // in this run
  std::int64_t resumed = 0;     // sources done by earlier runs
  int rank = -1;                // -1: no ranks
  int threads = 1;

  // "decoding: both threads were busy, the writer waited 96 % of the time"
  std::string limit() const;
  // Prints to stdout. `made`: the finished caches; empty if shards are still missing.
  void print(const std::string& what, const std::vector<std::pair<std::string, CacheInfo>>& made,
             bool json) const;

 private:
  LoaderStats stats_;
  std::map<std::string, std::int64_t> reasons_;
  std::chrono::steady_clock::time_point started_;
  double cpu_started_;
};

}  // namespace millrace
