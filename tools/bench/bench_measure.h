// One measurement = one process = one JSON line on stdout, with the fields that the peers' scripts
// print too, so that one table holds all: a small epoch to warm up, then one timed epoch from an
// empty pipeline to its last batch.
#pragma once

#include <millrace/pipeline/loader/loader.h>
#include <millrace/version.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

namespace millrace {

struct Measurement {
  std::string workload, peer = "millrace", note = {};
  std::string version = std::string("millrace ") + millrace::version;
  int workers = 0;
  std::int64_t files = 0;
  std::int64_t passes = 2;  // timed passes over the data set
};

inline double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Busy seconds of the whole machine; minus ours, it is what other processes used.
inline double machine_busy_seconds() {
  std::ifstream stat("/proc/stat");
  std::string label;
  double fields[8] = {};
  stat >> label;
  for (double& field : fields) stat >> field;
  double busy = 0;
  for (int i = 0; i < 8; ++i) busy += i == 3 || i == 4 ? 0 : fields[i];
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Peak resident memory of the process so far, in MB.
inline double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

// Calls `consume` with every batch, as a trainer would. Without `warm_up` the first pass is timed
// too.
inline void measure(const Measurement& what, Loader& loader,
                    const std::function<void(const Batch&)>& consume, bool warm_up = true) {
  using Clock = std::chrono::steady_clock;
  auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  auto start = Clock::now();
  double first = 0;
  if (warm_up) {
    for (const Batch& batch : loader) {
      if (first == 0) first = seconds_since(start);
      consume(batch);
    }
  }
  double cpu = process_cpu_seconds(), busy = machine_busy_seconds();
  start = Clock::now();
  std::int64_t items = 0;
  // Passes follow one another without a pause, as a trainer asks for them.
  for (const Batch& batch : loader.cycle()) {
    if (first == 0) first = seconds_since(start);
    items += batch.size();
    consume(batch);
    if (items >= what.passes * what.files) break;
  }
  double seconds = seconds_since(start);
  cpu = process_cpu_seconds() - cpu;
  busy = machine_busy_seconds() - busy;
  nlohmann::json line{{"workload", what.workload},
                      {"peer", what.peer},
                      {"version", what.version},
                      {"items_per_s", static_cast<double>(items) / seconds},
                      {"cpu_seconds_per_item", cpu / static_cast<double>(items)},
                      {"cpu_busy_cores", cpu / seconds},
                      {"foreign_cores", std::max(0.0, (busy - cpu) / seconds)},
                      {"peak_rss_mb", peak_rss_mb()},
                      {"workers", what.workers},
                      {"files", what.files},
                      {"items", items},
                      {"seconds", seconds},
                      {"first_batch_s", first},
                      {"note", what.note},
                      {"verdict", loader.stats().verdict()}};
  std::cout << line.dump() << std::endl;
}

}  // namespace millrace
