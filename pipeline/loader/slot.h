// Private to the loader: one slot of the ring, i.e. the memory of one batch and the graph that
// fills it. Rows are claimed in order by whichever worker is free; the last claim lets the next
// slot start, so batches are made in the order in which they are wanted.
#pragma once

#include <millrace/pipeline/loader/batch_data.h>
#include <millrace/pipeline/loader/buffer_pool.h>
#include <millrace/pipeline/loader/loader.h>
#include <millrace/pipeline/loader/stage_clock.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <taskflow/taskflow.hpp>

namespace millrace {

// What all slots of a loader share. Nothing here changes once the loader runs, but for the parts
// that lock for themselves.
struct LoaderParts {
  LoaderParts(AnyDataset dataset, LoaderOptions options);

  AnyDataset dataset;
  LoaderOptions options;
  const Schema& schema;
  Sampler sampler;
  std::shared_ptr<Pool> pool;
  Ledger ledger;
  StageClock clock;
  std::vector<Collate> collate;                  // by field
  std::vector<std::optional<ToFloat>> to_float;  // by field
  std::vector<std::vector<Buffer>> undecoded;    // by worker and field: to_float's input
  // Shared with the buffers that come back after the loader is gone.
  std::shared_ptr<ConsumerStream> consumer = std::make_shared<ConsumerStream>();
  BufferPool host_memory, device_memory;
  ByteBudget budget;
  std::int64_t predicted_bytes = 0;
  std::atomic<bool> stop{false};

  Shape batch_shape(int field) const;  // of one row, after to_float
  DType batch_dtype(int field) const;
};

class Slot {
 public:
  struct Events {
    std::function<void(Slot&)> all_claimed;  // every row has begun
    std::function<void(Slot&)> published;    // the batch is complete, or has failed
    std::function<void(Slot&)> copied;       // the device has read the host memory
  };

  Slot(LoaderParts& parts, Events events);

  // Makes the slot ready for a step. Called before start(), while nothing runs.
  void prepare(const Step& step, std::int64_t batch_number);
  void start() { finished_ = parts_.pool->executor().run(graph_); }
  // Until the graph has ended to the last instruction.
  void join() {
    if (finished_.valid()) finished_.wait();
  }
  // After it was published: the consumer's view, what went wrong, and which samples failed.
  BatchData& data() { return data_; }
  const Status& status() const { return status_; }
  std::vector<BadSample> take_failures();
  std::int64_t replaced_rows() const;
  std::int64_t dropped_rows() const { return data_.step.rows - data_.rows; }
  std::int64_t bytes() const;
  // The consumer is done with the batch; what it may have kept is let go.
  void recycle();

  // "row 3: sample 71 (clips/a.mp4) has been loading for 31.0 s", for the watchdog.
  std::string describe_progress() const;
  std::int64_t batch_number() const { return batch_number_; }
  // Its rows take microseconds each.
  bool is_quick() const { return rows_per_task_ > 1; }
  std::string dump_graph() const { return graph_.dump(); }

  // Guarded by the ring's lock.
  bool ready = false;
  std::int64_t ready_ns = 0;
  bool in_use = false;  // started, and not yet given back by the consumer
  // A copy reads the host memory. Set by the transfer, cleared under the lock when `copied` fires.
  std::atomic<bool> copying{false};

 private:
  struct Row {
    explicit Row(Sample s) : sample(std::move(s)) {}
    Sample sample;
    std::atomic<std::int64_t> index{-1};  // being loaded now; -1: none
    std::atomic<std::int64_t> since_ns{0};
    bool replaced = false, dropped = false;
    std::vector<BadSample> failures;
    Status status;
  };
  struct FieldMemory {
    Buffer host, device, converted;
  };

  void put_in_order();
  void load_rows() noexcept;
  // What the rows of one task share.
  struct Task {
    StageClock::Timer& timer;
    int worker;
    std::int64_t since_ns;
  };
  void load_row(std::int64_t number, std::int64_t index, const Task& task) noexcept;
  Status fill_row(Row& row, std::int64_t number, std::int64_t planned, const Task& task);
  Status try_load(Row& row, std::int64_t number, std::int64_t index, int worker);
  void collate() noexcept;
  void leave_out_dropped_rows();
  void collate_field(int field);
  void transfer() noexcept;
  void ensure(Buffer& buffer, BufferPool& pool, std::size_t bytes);
  void bind_rows(int field);
  std::size_t row_bytes(int field) const;
  Row& row(std::int64_t number) { return rows_[static_cast<std::size_t>(number)]; }

  LoaderParts& parts_;
  Events events_;
  tf::Taskflow graph_;
  tf::Future<void> finished_;
  std::deque<Row> rows_;
  std::vector<FieldMemory> memory_;
  BatchData data_;
  Status status_;
  std::vector<FencePtr> reusable_;  // when nothing reads the device memory any more
  std::int64_t batch_number_ = -1;
  std::int64_t rows_per_task_;
  std::atomic<std::int64_t> claimed_{0};
  std::vector<std::pair<std::int64_t, std::int64_t>>
      longest_first_;                // minus cost, row; empty: in order
  std::atomic<bool> doomed_{false};  // a row has failed for good: the others need not be loaded
  std::atomic<int> stage_{0};
};

}  // namespace millrace
