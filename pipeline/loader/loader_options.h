// The options of a Loader. All have defaults; set those that differ with designated initialisers.
//
//   LoaderOptions options{.batch_size = 32, .shuffle = true, .prefetch = 8};
//   options.errors = {.max_fraction = 0.01, .ledger = "errors.jsonl"};
//   options.to_float["image"] = ToFloat::unit();
#pragma once

#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/device/device.h>
#include <millrace/pipeline/device/to_float.h>
#include <millrace/pipeline/loader/collate.h>
#include <millrace/pipeline/order/sampler.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

// What happens when a sample cannot be loaded.
struct ErrorPolicy {
  bool fail = false;  // true: the first bad sample ends the run
  // true: the row of a bad sample is left out instead of replaced. The batch is shorter, possibly
  // empty, and Batch::indices() lists the samples in it. For programs that must not repeat data,
  // e.g. when writing a cache.
  bool drop = false;
  double max_fraction = 0.2;       // a larger fraction of bad samples ends the run
  std::int64_t max_count = -1;     // a larger number of bad samples ends the run; -1: no limit
  std::string max_name{};          // the program's flag for that limit, used in messages
  int max_attempts = 64;           // number of replacements tried for one row
  std::filesystem::path ledger{};  // e.g. "errors.jsonl"; empty: kept in memory only. Rank 1 writes
                                   // errors.rank1.jsonl, and so on: ranks do not share a file
};

// Batches of samples of similar length (Dataset::length), which need little padding. The order
// still depends on the seed alone and is still shuffled.
struct BucketOptions {
  // Number of batches whose samples are sorted by length together. A larger window means less
  // padding, a smaller one is closer to a plain shuffle. 0: no buckets.
  std::int64_t window = 0;
};

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  std::uint64_t seed = 42;
  int prefetch = 4;  // batches prepared ahead of the one that the consumer holds
  int threads = 0;   // size of a thread pool for this loader alone; 0: `pool`, or Pool::shared()
  std::shared_ptr<Pool> pool{};
  Tail tail = Tail::shorten;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t group = 1;  // batches that end an epoch together, e.g. the micro-batches of a step
  BucketOptions bucket{};
  // Where to continue, e.g. from a checkpoint. Its seed replaces `seed`, and the ledger is read.
  std::optional<Position> position{};
  std::map<std::string, Collate> collate{};   // by field
  std::map<std::string, ToFloat> to_float{};  // by field; it must be uint8 of fixed shape
  ErrorPolicy errors{};
  std::int64_t max_bytes = 0;  // limit of the loader's memory; 0: no limit
  // After waiting this long, next() logs which stage and sample it waits for.
  std::chrono::milliseconds stall_warning{30'000};
  // After waiting this long, next() throws. 0: it waits for ever, unless the consumer itself holds
  // every batch, so that the wait could never end.
  std::chrono::milliseconds stall_timeout{0};
  std::shared_ptr<Device> device{};  // null: batches stay on the host
  bool trace = false;                // record every stage for write_trace()
};

}  // namespace millrace
