// Private to the loader: one slot of the ring, i.e. the memory of one batch and the graph that
// fills it. Any free worker claims the next rows; the last claim lets the next slot start, so
// batches are made in the order in which they are delivered.
#pragma once

#include "batch_memory.h"
#include "row_loader.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <taskflow/taskflow.hpp>

namespace millrace::detail {

class Slot {
 public:
  // Called by the tasks of the slot, and by the device.
  struct Events {
    std::function<void(Slot&)> all_claimed;  // every row has begun
    std::function<void(Slot&)> published;    // the batch is complete, or has failed
    std::function<void(Slot&)> copied;       // the device has read the host memory
  };

  Slot(LoaderParts& parts, Events events);

  // Makes the slot ready for a step. Called before start(), while nothing runs.
  void prepare(const Step& step, std::int64_t batch_number);
  void start() { finished_ = parts_.pool->executor().run(graph_); }
  // Waits until no task of the graph runs, not even the end of published().
  void join() {
    if (finished_.valid()) finished_.wait();
  }
  // After the batch was published: its content, its error, and the samples that failed.
  BatchData& data() { return data_; }
  const Status& status() const { return status_; }
  std::vector<BadSample> take_failures() { return rows_.take_failures(); }
  std::int64_t replaced_rows() const { return rows_.replaced_rows(); }
  std::int64_t dropped_rows() const { return data_.step.rows - data_.rows; }
  std::int64_t bytes() const;
  // Releases the batch after the consumer is done with it. Arrays that the consumer kept stay
  // valid.
  void recycle();

  // "batch 7 is at stage 'load': row 3, sample 71 (clips/a.mp4) for 31.0 s". Thread-safe.
  std::string describe_progress() const;
  std::int64_t batch_number() const { return batch_number_; }
  // True if its rows take microseconds each.
  bool is_quick() const { return rows_.rows_per_task() > 1; }
  std::string dump_graph() const { return graph_.dump(); }

  // Guarded by the ring's lock.
  bool ready = false;
  std::int64_t ready_ns = 0;
  bool in_use = false;  // started, and not yet given back by the consumer
  // A copy reads the host memory. Set by the transfer, cleared under the lock when `copied` fires.
  std::atomic<bool> copying{false};

 private:
  void build_graph();
  void load_rows() noexcept;
  void collate() noexcept;
  void transfer() noexcept;

  LoaderParts& parts_;
  Events events_;
  BatchData data_;
  BatchMemory memory_;
  RowLoader rows_;
  tf::Taskflow graph_;
  tf::Future<void> finished_;
  Status status_;
  std::int64_t batch_number_ = -1;
  std::atomic<Stage> stage_{Stage::load};
};

}  // namespace millrace::detail
