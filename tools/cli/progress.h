// Shows the progress of a long job on stderr: a bar that is redrawn on a terminal, a plain line
// every few seconds elsewhere. Log lines appear above the bar.
//
//   Progress progress({.what = "images", .total = 500});
//   while (work()) progress.update({.items = done, .bytes = read, .errors = bad});
//   progress.finish();
//
//   images [#########-------------]  41 %  205/500  312 items/s  61.2 MB/s  ETA 0:01  errors 3
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>

namespace millrace {

struct ProgressOptions {
  std::string what = "items";
  std::int64_t total = -1;  // -1: unknown
  std::int64_t done = 0;    // items of an earlier run: count for the bar, not for the rate
  std::string unit = "items";
  bool files = true;   // bytes and errors are shown
  bool quiet = false;  // draws nothing
  std::FILE* to = stderr;
  std::chrono::milliseconds line_every{5'000};  // where there is no terminal
};

class Progress {
 public:
  struct State {
    std::int64_t items = 0;  // of this run
    std::int64_t bytes = 0;
    std::int64_t errors = 0;
    std::string note{};  // e.g. "data 3 %"
  };

  explicit Progress(ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: most calls draw nothing. Call from one thread; log lines may come from any thread.
  void update(const State& state);
  // Removes the bar, so that the next output starts on a clean line.
  void finish();

  // The line as drawn on a terminal of this width, for tests.
  std::string line(const State& state, int columns) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Mark {
    Clock::time_point at;
    std::int64_t items, bytes;
  };
  void draw();

  ProgressOptions options_;
  bool terminal_;
  mutable std::mutex mutex_;
  State state_;
  std::deque<Mark> marks_;  // of the last seconds, for the rate
  Clock::time_point started_, drawn_;
  bool shown_ = false, finished_ = false;
};

// "0:07", "12:34", "1:02:03"
std::string in_time(double seconds);
// "812 B", "61.2 MB"
std::string in_bytes(double bytes);

}  // namespace millrace
