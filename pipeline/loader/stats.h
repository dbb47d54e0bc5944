// Statistics of a loader. They say whether the consumer waits for data and which stage is slow.
//
//   LoaderStats stats;  // = loader.stats()
//   std::string table = to_string(stats);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct StageStats {
  std::string name;  // load, collate, transfer
  std::int64_t count = 0;
  double cpu_seconds = 0;
  double wall_seconds = 0;
  double p50_us = 0;  // percentiles of the wall time of one run of the stage
  double p99_us = 0;
};

struct LoaderStats {
  std::int64_t batches = 0;
  std::int64_t samples = 0;
  std::int64_t bytes = 0;           // size of the delivered batches
  std::int64_t collated_bytes = 0;  // the part of it in fields of variable shape
  std::int64_t padding_bytes = 0;   // the part of collated_bytes that is padding
  std::int64_t replaced = 0;        // rows that hold another sample than planned
  std::int64_t dropped = 0;         // rows left out because their sample was bad
  std::int64_t bad_samples = 0;
  double wall_seconds = 0;           // from the first call of next() to the end of the last
  double consumer_wait_seconds = 0;  // time that next() waited for data
  double slot_wait_seconds = 0;      // time that finished batches waited for next(), summed
  std::int64_t predicted_bytes = 0;  // peak host memory, predicted when the loader was made
  std::vector<StageStats> stages;

  // The fraction of the wall time that the consumer waited for data.
  double data_wait_share() const;
  // The fraction of collated_bytes that is padding.
  double padding_share() const;
  // "compute-bound: 1.2 % of the time was spent waiting for data"
  std::string verdict() const;
};

// A table of several lines, to be printed.
std::string to_string(const LoaderStats& stats);

}  // namespace millrace
