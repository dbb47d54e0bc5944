// Loads the samples of a data set in parallel and returns them as batches, in an order that depends
// on the seed alone. The loader owns a ring of slots. A slot holds the memory of one batch and one
// Taskflow graph (rows -> collate -> transfer -> publish), which runs again when the consumer gives
// the slot back.
//
//   Loader loader(dataset, {.batch_size = 4, .shuffle = true, .prefetch = 4});
//   std::int64_t samples = 0;
//   for (const Batch& batch : loader) samples += batch.size();  // one epoch
//   for (const Batch& batch : loader.cycle()) {                 // one epoch after the other
//     samples += batch.size();
//     if (samples > 1000) break;
//   }
#pragma once

#include <millrace/pipeline/data/batch.h>
#include <millrace/pipeline/data/dataset.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/loader/loader_options.h>
#include <millrace/pipeline/loader/stats.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

namespace detail {
class Ring;
}  // namespace detail

class Loader {
 public:
  // Throws an Error that names the option if the options do not fit each other or the data set.
  Loader(AnyDataset dataset, LoaderOptions options = {});
  // Waits only for samples that are being loaded and for copies to the device.
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  // Returns the next batch, or nothing at the end of an epoch; the call after that starts the next
  // epoch. Throws an Error if a sample failed and ErrorPolicy says so, after cancel(), or when the
  // wait exceeds stall_timeout.
  std::optional<Batch> next();

  // Iterates over the rest of the current epoch.
  class Iterator;
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  // Iterates over this epoch and all that follow, and prefetches across their borders. From then on
  // next() always returns a batch.
  class Cycle;
  Cycle cycle();

  // Where to continue a run that stops now: after the last batch that next() returned.
  Position position() const;
  // Drops the batches in flight and continues at `position`, e.g. to validate the same epoch again.
  void seek(const Position& position);
  // Makes next() throw, also one that is waiting. Thread-safe.
  void cancel();

  std::int64_t batches_per_epoch() const;
  LoaderStats stats() const;
  const Ledger& ledger() const;
  const Schema& schema() const;
  // The task graph of one slot, in Graphviz' DOT language.
  std::string dump_graph() const;
  // Writes what each worker did as Chrome trace events; needs LoaderOptions::trace.
  void write_trace(const std::filesystem::path& path) const;

 private:
  std::shared_ptr<detail::Ring> ring_;
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
