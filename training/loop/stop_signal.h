// SIGINT and SIGTERM as a wish to stop, which a run looks at between its steps. When nothing looks
// for too long, `stuck` is called on a thread of its own. A second signal ends the program at once.
// One may live inside another, as the loop inside its program: a signal that came before counts,
// and only the inner one's `stuck` is called.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace millrace {

class StopSignal {
 public:
  StopSignal(std::function<void()> stuck, std::chrono::milliseconds patience);
  // For what comes before a loop: the program is ended by the signal if no loop begins in time.
  explicit StopSignal(std::chrono::milliseconds patience);
  // Brings the former handlers back.
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal that came, or 0.
  static int received();

 private:
  void watch(std::chrono::milliseconds patience);

  std::function<void()> stuck_;
  StopSignal* outer_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace millrace
