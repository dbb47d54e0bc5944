// Private to the loader: loads the rows of one batch. Workers claim rows one after the other; a bad
// sample is replaced or dropped as ErrorPolicy says; to_float runs here when there is no device.
#pragma once

#include "batch_memory.h"

#include <millrace/pipeline/data/sample.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {

class RowLoader {
 public:
  // `data` receives the index of every loaded sample; its step says which samples to load.
  RowLoader(LoaderParts& parts, BatchMemory& memory, BatchData& data);

  // Number of rows that one task loads: more than 1 if a row takes microseconds.
  std::int64_t rows_per_task() const { return rows_per_task_; }

  // Prepares for the step in `data`. Called while no task runs.
  void prepare(std::int64_t batch_number);

  // Rows [first, end) of the batch; empty if none are left.
  struct Claim {
    std::int64_t first = 0, end = 0;
    bool is_last = false;  // every row is claimed now
  };
  Claim claim();
  void load(const Claim& claim) noexcept;

  // After all rows are loaded: the first error in order of rows.
  Status take_status();
  bool is_dropped(std::int64_t row) const { return rows_[static_cast<std::size_t>(row)].dropped; }
  const Array& value(std::int64_t row, const FieldPlan& plan) const {
    return rows_[static_cast<std::size_t>(row)].sample.value(plan.field);
  }
  std::vector<BadSample> take_failures();
  std::int64_t replaced_rows() const;

  // ": row 3, sample 71 (clips/a.mp4) for 31.0 s", for the message about a stall. Thread-safe.
  std::string describe_progress() const;

 private:
  struct Row {
    explicit Row(Sample s) : sample(std::move(s)) {}
    Sample sample;
    std::atomic<std::int64_t> index{-1};  // of the sample being loaded; -1: none
    std::atomic<std::int64_t> since_ns{0};
    bool replaced = false, dropped = false;
    std::vector<BadSample> failures;
    Status status;
  };
  // What the rows of one task share.
  struct Task {
    StageClock::Timer& timer;
    int worker;
    std::int64_t since_ns;
  };

  void bind_rows(const FieldPlan& plan);
  void order_by_cost();
  void load_row(std::int64_t number, std::int64_t index, const Task& task) noexcept;
  Status fill_row(Row& row, std::int64_t number, std::int64_t planned, const Task& task);
  Status load_sample(Row& row, std::int64_t number, std::int64_t index, int worker);
  void bind_pixels(Row& row, int worker) const;
  void convert_pixels(const Row& row, std::int64_t number) const;
  void record_failure(Row& row, std::int64_t index, std::int64_t position, Error& error) const;
  Error no_replacement(const Row& row, std::int64_t position) const;
  bool is_stopping() const {
    return parts_.stop.load(std::memory_order_relaxed) || failed_.load(std::memory_order_relaxed);
  }

  LoaderParts& parts_;
  BatchMemory& memory_;
  BatchData& data_;
  std::deque<Row> rows_;
  std::int64_t rows_per_task_;
  std::int64_t batch_number_ = -1;
  std::atomic<std::int64_t> claimed_{0};
  // (-cost, row), sorted; empty: rows are claimed in order.
  std::vector<std::pair<std::int64_t, std::int64_t>> longest_first_;
  std::atomic<bool> failed_{false};  // a row has an error, so the batch has: skip the other rows
};

}  // namespace millrace::detail
