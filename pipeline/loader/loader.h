// The loader: samples of a data set, in parallel, as batches, in an order that depends on the seed
// alone. It owns a ring of slots; each holds the memory of one batch and one Taskflow graph (rows
// -> collate -> transfer -> publish) that runs again whenever the consumer gives the slot back.
//
//   auto [train, valid] = random_split(clips, {.valid_fraction = 0.05, .seed = 42});
//   Loader loader(train, {.batch_size = 4, .shuffle = true, .prefetch = 4});
//   for (const Batch& batch : loader) consume(batch["video"]);            // one epoch
//   for (const Batch& batch : loader.cycle()) if (!step(batch)) break;    // without end
#pragma once

#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/data/batch.h>
#include <millrace/pipeline/data/dataset.h>
#include <millrace/pipeline/device/device.h>
#include <millrace/pipeline/device/to_float.h>
#include <millrace/pipeline/loader/collate.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/loader/stats.h>
#include <millrace/pipeline/order/sampler.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

// What happens when a sample cannot be loaded.
struct ErrorPolicy {
  bool fail = false;  // true: the first bad sample ends the run
  // true: its row is left out instead of replaced. The batch is shorter, possibly empty, and
  // Batch::indices() tells what is in it. For who must not make data up, e.g. a cache.
  bool drop = false;
  double max_fraction = 0.2;       // more bad samples than this share of the data set end the run
  std::int64_t max_count = -1;     // so do more than this many; -1: no such limit
  std::string max_name{};          // what the user calls that limit, for messages: a program's flag
  int max_attempts = 64;           // how many replacements are tried for one row
  std::filesystem::path ledger{};  // e.g. "errors.jsonl"; empty: kept in memory only
};

// Batches of samples of similar length (Dataset::length), so that little of them is padding. The
// order still depends on the seed alone, and is still shuffled.
struct BucketOptions {
  // Samples of so many batches are sorted together and dealt out anew. More: less padding. Fewer:
  // nearer to a plain shuffle. 0: no buckets.
  std::int64_t window = 0;
};

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  std::uint64_t seed = 42;
  int prefetch = 4;  // batches prepared ahead of the one that the consumer holds
  int threads = 0;   // a pool of this many for this loader alone; 0: `pool`, or Pool::shared()
  std::shared_ptr<Pool> pool{};
  Tail tail = Tail::shorten;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t group = 1;  // batches that end an epoch together, e.g. the micro-batches of a step
  BucketOptions bucket{};
  // Go on from here, e.g. from a checkpoint: the seed in it wins, and the ledger is read again.
  std::optional<Position> position{};
  std::map<std::string, Collate> collate{};   // by field
  std::map<std::string, ToFloat> to_float{};  // by field; it must be uint8 of fixed shape
  ErrorPolicy errors{};
  std::int64_t max_bytes = 0;  // refuse to need more memory than this; 0: no limit
  // When the consumer has waited this long, a line says which stage and sample it waits for.
  std::chrono::milliseconds stall_warning{30'000};
  // When it has waited this long, next() throws; 0: never, except where only the consumer itself
  // could end the wait because it holds every slot.
  std::chrono::milliseconds stall_timeout{0};
  std::shared_ptr<Device> device{};  // null: batches stay on the host
  bool trace = false;                // record every stage for write_trace()
};

class Loader {
 public:
  // Throws an Error that names the numbers if no batch could come of it.
  Loader(AnyDataset dataset, LoaderOptions options = {});
  // Stops at once: waits only for samples that are being loaded, and for copies in flight.
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  // The next batch, or nothing at the end of an epoch; the call after that starts the next epoch.
  // Throws if a sample failed and the policy says so, if cancelled, or if stalled.
  std::optional<Batch> next();

  // Over the rest of the current epoch.
  class Iterator;
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  // Over this epoch and all that follow, prefetching across their borders. `next` then never ends.
  class Cycle;
  Cycle cycle();

  // Where a run that stops now goes on: after the last batch that next() gave.
  Position position() const;
  // Leaves what is in flight and goes on at `position`, e.g. to validate the same epoch again.
  void seek(const Position& position);
  // From any thread: next() throws, now and from now on.
  void cancel();

  std::int64_t batches_per_epoch() const;
  LoaderStats stats() const;
  const Ledger& ledger() const;
  const Schema& schema() const;
  // The graph of one slot in Graphviz' DOT.
  std::string dump_graph() const;
  // What each worker did, as Chrome trace events; needs `trace`.
  void write_trace(const std::filesystem::path& path) const;

 private:
  class Ring;
  std::shared_ptr<Ring> ring_;
};

class Loader::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(Loader& loader) : loader_(&loader), batch_(loader.next()) {}
  const Batch& operator*() const { return *batch_; }
  Iterator& operator++() {
    batch_.reset();  // gives the slot back before waiting for the next
    batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

 private:
  Loader* loader_;
  std::optional<Batch> batch_;
};

class Loader::Cycle {
 public:
  explicit Cycle(Loader& loader) : loader_(&loader) {}
  Iterator begin() { return Iterator(*loader_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Loader* loader_;
};

inline Loader::Iterator Loader::begin() {
  return Iterator(*this);
}

}  // namespace millrace
