// Private to the loader: the ring of slots. It decides when a batch starts, delivers batches in
// order and records the samples that failed.
#pragma once

#include <millrace/pipeline/loader/loader_parts.h>
#include <millrace/pipeline/loader/slot/slot.h>
#include <millrace/pipeline/loader/stats.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace millrace::detail {

// Note [the ring]
// A slot is free, running, ready, or held by the consumer. Slots start in the order of the sampler.
// A slot starts only when every row of the slot before it has been claimed, so workers always work
// on the batch that is delivered first. No worker ever blocks: when no slot is free, no batch
// starts until the consumer gives one back. The ring outlives its loader while the consumer holds a
// batch.
class Ring : public std::enable_shared_from_this<Ring> {
 public:
  Ring(AnyDataset dataset, LoaderOptions options);

  // The next batch; null at the end of an epoch. Giving up the pointer gives the slot back.
  std::shared_ptr<BatchData> next();
  void cycle();
  void seek(const Position& position);
  void cancel();
  // Cancels, and waits for running tasks and copies.
  void close();
  LoaderStats stats() const;
  Position position() const;

  LoaderParts parts;
  std::vector<std::unique_ptr<Slot>> slots;

 private:
  // A function with a parameter of this type is called with the lock held.
  using Lock = std::unique_lock<std::mutex>;

  void start_next(const Lock&);
  void all_claimed(Slot& slot);
  void published(Slot& slot);
  void copied(Slot& slot);
  void give_back(Slot& slot);
  void free_if_unused(Slot& slot, const Lock&);
  void drain(Lock& lock);

  bool is_ready(const Lock&) const;
  bool worth_waking_for(const Slot& slot, const Lock&) const;
  void wait_until_ready(Lock& lock);
  void check_cancelled(const Lock&) const;
  std::shared_ptr<BatchData> deliver(Lock& lock, std::int64_t called_ns);
  void finish_epoch(const Lock&);
  void count_delivery(Slot& slot, std::int64_t called_ns);
  [[noreturn]] void fail(Error error);
  void record_failures(Slot& slot);
  void log_failure(const std::string& line);
  void check_error_limits(const std::string& last_failure);
  std::string describe_stall(const Lock&) const;
  bool consumer_holds_all(const Lock&) const { return held_ == static_cast<int>(slots.size()); }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot*> free_;
  std::vector<Slot*> in_flight_;  // by batch number modulo the number of slots
  Slot* open_ = nullptr;          // the slot with unclaimed rows, if any
  Position cursor_;               // of the next batch to start
  Position delivered_position_;   // after the last batch that was delivered
  std::int64_t epoch_ = 0;        // of the batches that next() returns now
  std::int64_t started_ = 0, delivered_ = 0;
  int running_ = 0, held_ = 0;
  bool wanted_ = false;  // next() has been called in this epoch; batches start only then
  bool cycling_ = false, cancelled_ = false;
  std::optional<Error> failed_;
  int lines_logged_ = 0;
  LoaderStats stats_;
  std::int64_t first_call_ns_ = 0, last_return_ns_ = 0;
};

}  // namespace millrace::detail
