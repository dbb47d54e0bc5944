#include <millrace/pipeline/loader/stats.h>

#include <algorithm>
#include <cstdio>

namespace millrace {

namespace {

template <typename... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  int length = std::snprintf(nullptr, 0, pattern, arguments...);
  std::string text(static_cast<std::size_t>(std::max(length, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), pattern, arguments...);
  text.pop_back();
  return text;
}

}  // namespace

double LoaderStats::data_wait_share() const {
  if (wall_seconds <= 0) return 0;
  return std::min(1.0, consumer_wait_seconds / wall_seconds);
}

double LoaderStats::padding_share() const {
  if (collated_bytes <= 0) return 0;
  return static_cast<double>(padding_bytes) / static_cast<double>(collated_bytes);
}

std::string LoaderStats::verdict() const {
  if (batches == 0) return "nothing loaded yet";
  // Below 5 %, faster loading would hardly shorten the run.
  const char* bound = data_wait_share() < 0.05 ? "compute-bound" : "data-bound";
  return format("%s: %.1f %% of the time was spent waiting for data", bound,
                100 * data_wait_share());
}

std::string to_string(const LoaderStats& stats) {
  double seconds = std::max(stats.wall_seconds, 1e-9);
  std::string text =
      format("%lld batches, %lld samples in %.3f s: %.0f samples/s, %.1f MB/s\n",
             static_cast<long long>(stats.batches), static_cast<long long>(stats.samples),
             stats.wall_seconds, static_cast<double>(stats.samples) / seconds,
             static_cast<double>(stats.bytes) / seconds / 1e6);
  text += format("waiting: consumer for data %.3f s, batches for the consumer %.3f s\n",
                 stats.consumer_wait_seconds, stats.slot_wait_seconds);
  text += "stage           runs     CPU s    p50 us     p99 us\n";
  for (const StageStats& stage : stats.stages) {
    text +=
        format("%-10s %9lld %9.3f %9.1f %10.1f\n", stage.name.c_str(),
               static_cast<long long>(stage.count), stage.cpu_seconds, stage.p50_us, stage.p99_us);
  }
  if (stats.collated_bytes > 0) {
    text += format("padding: %.1f %% of what was collated\n", 100 * stats.padding_share());
  }
  if (stats.bad_samples > 0) {
    text += format("bad samples: %lld (%lld rows %s)\n", static_cast<long long>(stats.bad_samples),
                   static_cast<long long>(stats.dropped > 0 ? stats.dropped : stats.replaced),
                   stats.dropped > 0 ? "left out" : "replaced");
  }
  return text + stats.verdict() + "\n";
}

}  // namespace millrace
