#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/loader/stage_clock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include <time.h>

namespace millrace::detail {

namespace {

constexpr std::size_t most_events_per_worker = 1'000'000;
// The CPU time of a thread takes a system call. For loads shorter than this, the wall time is used
// instead.
constexpr std::int64_t worth_a_system_call_ns = 100'000;

// A counter is written by one worker only, so no atomic read-modify-write is needed; other threads
// read it.
template <typename T, typename V>
void add(std::atomic<T>& counter, V value) {
  T now = counter.load(std::memory_order_relaxed);
  counter.store(now + static_cast<T>(value), std::memory_order_relaxed);
}

std::int64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

const char* name_of(Stage stage) {
  constexpr const char* names[] = {"load", "collate", "transfer"};
  return names[static_cast<int>(stage)];
}

StageClock::StageClock(int workers, bool trace) : trace_(trace), start_ns_(now_ns()) {
  for (int i = 0; i <= workers; ++i) workers_.push_back(std::make_unique<Worker>());
}

StageClock::Timer::Timer(StageClock& clock, Stage stage, int worker, std::int64_t batch,
                         std::int64_t row)
    : clock_(clock),
      stage_(stage),
      worker_(worker >= 0 ? static_cast<std::size_t>(worker) : clock.workers_.size() - 1),
      batch_(batch),
      row_(row) {
  bool long_loads =
      clock_.workers_[worker_]->recent_ns.load(std::memory_order_relaxed) > worth_a_system_call_ns;
  begin_cpu_ns_ = long_loads ? thread_cpu_ns() : -1;
  begin_ns_ = now_ns();
}

StageClock::Timer::~Timer() {
  if (count_ == 0) return;
  Worker& worker = *clock_.workers_[worker_];
  std::int64_t end = now_ns();
  std::int64_t wall = end - begin_ns_;
  std::int64_t cpu = begin_cpu_ns_ >= 0 ? thread_cpu_ns() - begin_cpu_ns_ : wall;
  Counter& counter = worker.stages[static_cast<std::size_t>(stage_)];
  add(counter.count, count_);
  add(counter.wall_ns, wall);
  add(counter.cpu_ns, cpu);
  add(counter.histogram[static_cast<std::size_t>(bucket_of(wall / count_))], count_);
  if (stage_ == Stage::load) worker.recent_ns.store(wall, std::memory_order_relaxed);
  if (clock_.trace_) {
    std::lock_guard lock(worker.mutex);
    if (worker.events.size() < most_events_per_worker) {
      worker.events.push_back({stage_, begin_ns_, end, batch_, row_, index_});
    }
  }
}

int StageClock::bucket_of(std::int64_t ns) {
  auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 8));
  int power = std::bit_width(value) - 1;  // at least 3
  auto eighth = static_cast<int>((value >> (power - 3)) & 7);
  return std::min((power - 3) * 8 + eighth, buckets - 1);
}

double StageClock::bucket_us(int bucket) {
  double low = std::ldexp(8 + bucket % 8, bucket / 8);
  return (low + std::ldexp(0.5, bucket / 8)) / 1000;
}

std::vector<StageStats> StageClock::summary() const {
  std::vector<StageStats> result;
  for (int s = 0; s < stage_count; ++s) {
    StageStats stats{.name = name_of(static_cast<Stage>(s))};
    std::array<std::int64_t, buckets> histogram{};
    for (const auto& worker : workers_) {
      const Counter& counter = worker->stages[static_cast<std::size_t>(s)];
      stats.count += counter.count.load(std::memory_order_relaxed);
      stats.cpu_seconds +=
          1e-9 * static_cast<double>(counter.cpu_ns.load(std::memory_order_relaxed));
      stats.wall_seconds +=
          1e-9 * static_cast<double>(counter.wall_ns.load(std::memory_order_relaxed));
      for (std::size_t b = 0; b < histogram.size(); ++b) {
        histogram[b] += counter.histogram[b].load(std::memory_order_relaxed);
      }
    }
    auto percentile = [&](double share) {
      auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(stats.count)));
      std::int64_t seen = 0;
      for (std::size_t b = 0; b < histogram.size(); ++b) {
        seen += histogram[b];
        if (seen >= wanted && seen > 0) return bucket_us(static_cast<int>(b));
      }
      return 0.0;
    };
    stats.p50_us = percentile(0.50);
    stats.p99_us = percentile(0.99);
    result.push_back(std::move(stats));
  }
  return result;
}

std::vector<std::vector<StageClock::Event>> StageClock::events() const {
  std::vector<std::vector<Event>> result;
  for (const auto& worker : workers_) {
    std::lock_guard lock(worker->mutex);
    result.push_back(worker->events);
  }
  return result;
}

void StageClock::write_trace(const std::filesystem::path& path) const {
  if (!trace_) {
    throw Error("nothing was traced; set LoaderOptions::trace").kind(ErrorKind::usage);
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << "{\"traceEvents\":[\n"
      << R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"millrace loader"}})";
  auto all = events();
  for (std::size_t w = 0; w < all.size(); ++w) {
    bool pool_thread = w + 1 < all.size();
    out << ",\n"
        << R"({"name":"thread_name","ph":"M","pid":1,"tid":)" << w << R"(,"args":{"name":")"
        << (pool_thread ? "worker " + std::to_string(w) : "other threads") << "\"}}";
    for (const Event& event : all[w]) {
      out << ",\n{\"name\":\"" << name_of(event.stage) << R"(","ph":"X","pid":1,"tid":)" << w
          << ",\"ts\":" << static_cast<double>(event.begin_ns - start_ns_) / 1000
          << ",\"dur\":" << static_cast<double>(event.end_ns - event.begin_ns) / 1000
          << ",\"args\":{\"batch\":" << event.batch << ",\"row\":" << event.row
          << ",\"index\":" << event.index << "}}";
    }
  }
  out << "\n]}\n";
  out.flush();
  if (!out) throw Error("cannot write the trace").at(path.string()).kind(ErrorKind::usage);
}

}  // namespace millrace::detail
