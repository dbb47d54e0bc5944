// Where the time went. A loader that keeps up shows a consumer that never waits; one that does not
// shows which stage is to blame.
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
  double p50_us = 0;  // of the wall time of one run of the stage
  double p99_us = 0;
};

struct LoaderStats {
  std::int64_t batches = 0;
  std::int64_t samples = 0;
  std::int64_t bytes = 0;           // of the batches delivered
  std::int64_t collated_bytes = 0;  // of them, of fields collated from several shapes
  std::int64_t padding_bytes = 0;   // of those, padding
  std::int64_t replaced = 0;        // rows that hold another sample than planned
  std::int64_t dropped = 0;         // rows that were left out because their sample was bad
  std::int64_t bad_samples = 0;
  double wall_seconds = 0;           // from the first call of next() to the end of the last
  double consumer_wait_seconds = 0;  // how long next() waited for data
  double slot_wait_seconds = 0;      // how long finished batches waited for the consumer, summed
  std::int64_t predicted_bytes = 0;  // what the loader said it would need
  std::vector<StageStats> stages;

  // The share of the wall time that the consumer lost waiting for data, 0 to 1.
  double data_wait_share() const;
  // The share of what was collated that is padding, 0 to 1.
  double padding_share() const;
  // "compute-bound: 1.2 % of the time was spent waiting for data"
  std::string verdict() const;
};

// A table for people.
std::string to_string(const LoaderStats& stats);

}  // namespace millrace
