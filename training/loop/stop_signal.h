// Turns SIGINT and SIGTERM into a flag that the training loop polls between steps. If the object
// still exists `timeout` after the signal, it calls `on_timeout` on its own thread. A second signal
// kills the process. Objects may be nested (the program's outside, the loop's inside): a signal
// from before the inner one still counts, and only the innermost `on_timeout` is called.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace millrace {

class StopSignal {
 public:
  StopSignal(std::function<void()> on_timeout, std::chrono::milliseconds timeout);
  // For the time before the loop: the signal kills the process if no loop starts within `timeout`.
  explicit StopSignal(std::chrono::milliseconds timeout);
  // The outermost object restores the previous signal handlers.
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal that was received, or 0.
  static int received();

 private:
  void watch(std::chrono::milliseconds timeout);

  std::function<void()> on_timeout_;
  StopSignal* outer_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread watcher_;
};

}  // namespace millrace
