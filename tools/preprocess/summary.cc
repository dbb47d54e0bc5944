#include "tools/preprocess/summary.h"

#include "tools/cli/progress.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

namespace millrace {

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// getrusage's maximum would include the memory of the program that started this one.
std::int64_t peak_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

// Time that our threads were ready to run but waited for a processor.
double starved_seconds() {
  double ns = 0;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream in(thread.path() / "schedstat");
    double ran = 0, waited = 0;
    if (in >> ran >> waited) ns += waited;
  }
  return ns * 1e-9;
}

double wall_of_load(const LoaderStats& stats) {
  return stats.stages.empty() ? 0 : stats.stages[0].wall_seconds;
}
double cpu_of_load(const LoaderStats& stats) {
  return stats.stages.empty() ? 0 : stats.stages[0].cpu_seconds;
}

// Most frequent first; reasons that differ only in numbers are counted as one.
std::vector<std::pair<std::int64_t, std::string>> by_count(
    const std::map<std::string, std::int64_t>& reasons) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason);
  std::ranges::sort(sorted);
  for (auto& item : sorted) item.first = -item.first;
  return sorted;
}

}  // namespace

Summary::Summary() : started_(std::chrono::steady_clock::now()), cpu_started_(cpu_seconds()) {}

void Summary::add(const LoaderStats& stats) {
  stats_.batches += stats.batches;
  stats_.samples += stats.samples;
  stats_.bytes += stats.bytes;
  stats_.wall_seconds += stats.wall_seconds;
  stats_.consumer_wait_seconds += stats.consumer_wait_seconds;
  if (stats_.stages.empty()) {
    stats_.stages = stats.stages;
    return;
  }
  for (std::size_t i = 0; i < stats.stages.size(); ++i) {
    stats_.stages[i].count += stats.stages[i].count;
    stats_.stages[i].cpu_seconds += stats.stages[i].cpu_seconds;
    stats_.stages[i].wall_seconds += stats.stages[i].wall_seconds;
  }
}

void Summary::add_failure(const std::string& reason) {
  ++failures;
  // Replaces numbers, so that equal reasons of different files are counted together.
  std::string kind;
  for (char c : reason) {
    bool digit = c >= '0' && c <= '9';
    if (!digit) kind += c;
    if (digit && (kind.empty() || kind.back() != '#')) kind += '#';
  }
  ++reasons_[reasons_.size() < 1000 ? kind : "other"];
}

std::string Summary::limit() const {
  if (stats_.batches == 0) return "nothing had to be read";
  double waited = 100 * stats_.data_wait_share();
  double busy = cpu_of_load(stats_) / std::max(wall_of_load(stats_), 1e-9);
  double used = wall_of_load(stats_) / std::max(stats_.wall_seconds, 1e-9) / threads;
  if (waited < 50) {
    return fmt::format("writing: the writer waited only {:.0f} % of the time for samples", waited);
  }
  double idle = wall_of_load(stats_) - cpu_of_load(stats_);
  if (busy < 0.6 && starved_seconds() > 0.5 * idle) {
    return fmt::format("other programs: they had the processors for {:.0f} % of our threads' time",
                       100 * (1 - busy));
  }
  if (busy < 0.6) {
    return fmt::format("reading the files: the threads waited {:.0f} % of their time for the disk",
                       100 * (1 - busy));
  }
  return fmt::format("decoding: {} were busy {:.0f} % of the time, the writer waited {:.0f} %",
                     threads == 1 ? "one thread" : fmt::format("{} threads", threads),
                     std::min(100.0, 100 * used), waited);
}

void Summary::print(const std::string& what,
                    const std::vector<std::pair<std::string, CacheInfo>>& made, bool json) const {
  double seconds = std::max(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count(), 1e-6);
  double cpu = cpu_seconds() - cpu_started_;
  auto cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  double items_per_s = static_cast<double>(read_items) / seconds;
  double bytes_per_s = static_cast<double>(read_bytes) / seconds;
  if (json) {
    nlohmann::json result{{"what", what},
                          {"items", read_items},
                          {"failures", failures},
                          {"resumed", resumed},
                          {"seconds", seconds},
                          {"items_per_s", items_per_s},
                          {"bytes_read", read_bytes},
                          {"bytes_per_s", bytes_per_s},
                          {"cpu_seconds", cpu},
                          {"cpu_share", cpu / seconds / cores},
                          {"peak_bytes", peak_bytes()},
                          {"limited_by", limit()},
                          {"caches", nlohmann::json::array()},
                          {"complete", !made.empty()}};
    if (rank >= 0) result["rank"] = rank;
    for (const auto& [reason, count] : reasons_) result["reasons"][reason] = count;
    for (const auto& [path, info] : made) {
      result["caches"].push_back({{"path", path},
                                  {"rows", info.rows},
                                  {"failed", info.failed},
                                  {"format", name_of(info.format)},
                                  {"schema", to_string(info.schema)}});
    }
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  std::string who = rank >= 0 ? fmt::format("rank {}: ", rank) : "";
  fmt::print("{}{} {}: {} good, {} bad in {:.2f} s: {:.1f} items/s, {:.1f} MB/s read\n", who,
             read_items, what, read_items - failures, failures, seconds, items_per_s,
             bytes_per_s / 1e6);
  if (resumed > 0) fmt::print("{} were done before\n", resumed);
  int shown = 0;
  for (const auto& [count, reason] : by_count(reasons_)) {
    if (++shown > 8) {
      fmt::print("  ... and {} more reasons\n", reasons_.size() - 8);
      break;
    }
    fmt::print("  {:6} x {}\n", count, reason);
  }
  fmt::print("limited by {}\n", limit());
  fmt::print("processor {:.0f} % of {:.0f} cores, peak memory {}\n", 100 * cpu / seconds / cores,
             cores, in_bytes(static_cast<double>(peak_bytes())));
  for (const auto& [path, info] : made) {
    fmt::print("{}: {} rows of {}\n", path, info.rows, to_string(info.schema));
    if (info.failed > 0) fmt::print("{}.errors.jsonl: the {} that failed\n", path, info.failed);
  }
}

}  // namespace millrace
