// Measures a decoding library without a loader: threads take the next file until all passes are
// done. The loader cannot be faster; the benchmark shows how close it comes.
#pragma once

#include "tools/bench/bench_measure.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace millrace {

inline std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Each thread calls `make_worker` once and the returned function for each item index. The first
// pass is warm-up and not measured. `weight`: number of items to count for one call, e.g. a batch
// size.
inline void measure_floor(const Measurement& what, std::int64_t items,
                          const std::function<std::function<void(std::int64_t)>()>& make_worker,
                          std::int64_t weight = 1) {
  using Clock = std::chrono::steady_clock;
  auto run = [&](std::int64_t passes) {
    std::atomic<std::int64_t> next{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < what.workers; ++i) {
      threads.emplace_back([&] {
        auto work = make_worker();
        for (std::int64_t item; (item = next.fetch_add(1)) < passes * items;) work(item % items);
      });
    }
  };
  run(1);
  double cpu = process_cpu_seconds(), busy = machine_busy_seconds();
  auto start = Clock::now();
  run(what.passes);
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  cpu = process_cpu_seconds() - cpu;
  busy = machine_busy_seconds() - busy;
  auto count = static_cast<double>(what.passes * items * weight);
  std::cout << nlohmann::json{{"workload", what.workload},
                              {"peer", what.peer},
                              {"version", what.version},
                              {"note", what.note},
                              {"items_per_s", count / seconds},
                              {"cpu_seconds_per_item", cpu / count},
                              {"cpu_busy_cores", cpu / seconds},
                              {"foreign_cores", std::max(0.0, (busy - cpu) / seconds)},
                              {"peak_rss_mb", peak_rss_mb()},
                              {"workers", what.workers},
                              {"files", items * weight},
                              {"items", what.passes * items * weight},
                              {"seconds", seconds}}
                   .dump()
            << std::endl;
}

}  // namespace millrace
