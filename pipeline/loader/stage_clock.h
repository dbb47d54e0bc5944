// Private to the loader: measures the time of the stages and, with LoaderOptions::trace, records
// every run of a stage.
#pragma once

#include <millrace/pipeline/loader/stats.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace::detail {

enum class Stage : int { load, collate, transfer };
constexpr int stage_count = 3;
const char* name_of(Stage stage);

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class StageClock {
 public:
  // For `workers` threads of the pool; all other threads share one more counter.
  StageClock(int workers, bool trace);

  struct Event {
    Stage stage;
    std::int64_t begin_ns, end_ns;
    std::int64_t batch, row, index;
  };

  // Measures from its construction to its destruction.
  class Timer {
   public:
    Timer(StageClock& clock, Stage stage, int worker, std::int64_t batch, std::int64_t row = -1);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    void set_index(std::int64_t index) { index_ = index; }
    // Number of runs of the stage that were measured together; each counts with the mean time. 0:
    // nothing is recorded.
    void set_count(std::int64_t count) { count_ = count; }

   private:
    StageClock& clock_;
    Stage stage_;
    std::size_t worker_;
    std::int64_t batch_, row_, index_ = -1, count_ = 1;
    std::int64_t begin_ns_, begin_cpu_ns_;
  };

  std::vector<StageStats> summary() const;
  std::vector<std::vector<Event>> events() const;  // per worker
  // Chrome trace events: open in Perfetto or chrome://tracing.
  void write_trace(const std::filesystem::path& path) const;

 private:
  // A histogram of wall times with 8 buckets per power of two: percentiles are within 9 %.
  static constexpr int buckets = 320;
  struct Counter {
    std::atomic<std::int64_t> count{0}, cpu_ns{0}, wall_ns{0};
    std::array<std::atomic<std::uint32_t>, buckets> histogram{};
  };
  struct alignas(64) Worker {
    std::array<Counter, stage_count> stages;
    std::atomic<std::int64_t> recent_ns{0};  // wall time of the last load
    mutable std::mutex mutex;                // guards events
    std::vector<Event> events;
  };
  static int bucket_of(std::int64_t ns);
  static double bucket_us(int bucket);

  bool trace_;
  std::int64_t start_ns_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace millrace::detail
