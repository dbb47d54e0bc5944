// Where a long job stands: a bar that is redrawn on a terminal, a plain line every few seconds
// elsewhere. On stderr, as all messages are; log lines appear above the bar.
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
  std::int64_t done = 0;    // before this run began: counts for the bar, not for the rate
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

  // Cheap: most calls draw nothing. From one thread; log lines may come from any.
  void update(const State& state);
  // Takes the bar away, so that what is printed next starts on a clean line.
  void finish();

  // The line as it would be drawn in so many columns, for tests.
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
  std::deque<Mark> marks_;  // of the last seconds: the rate that is shown
  Clock::time_point started_, drawn_;
  bool shown_ = false, finished_ = false;
};

// "0:07", "12:34", "1:02:03"
std::string in_time(double seconds);
// "812 B", "61.2 MB"
std::string in_bytes(double bytes);

}  // namespace millrace
