// What a run has done, for people and as JSON: counts, failures by reason, throughput, what limited
// it, and the most memory it had.
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

  // What the loaders of this run counted.
  void add(const LoaderStats& stats);
  void add_failure(const std::string& reason);

  std::int64_t read_items = 0;  // rows and failures of this run
  std::int64_t read_bytes = 0;  // of their files
  std::int64_t failures = 0;    // of this run
  std::int64_t resumed = 0;     // sources that were done before
  int rank = -1;                // -1: not one of several
  int threads = 1;

  // "decoding: both threads were busy, the writer waited 96 % of the time"
  std::string limit() const;
  // To stdout; `made` are the caches as they are now, empty if not all is done yet.
  void print(const std::string& what, const std::vector<std::pair<std::string, CacheInfo>>& made,
             bool json) const;

 private:
  LoaderStats stats_;
  std::map<std::string, std::int64_t> reasons_;
  std::chrono::steady_clock::time_point started_;
  double cpu_started_;
};

}  // namespace millrace
