// Detects ranks that have died and finds out why. On its own thread, every rank writes a heartbeat
// into the store once a second and checks that of the next rank. A rank that fails publishes the
// reason; the first published reason counts for all. If this rank hangs because another one is
// dead, the thread ends the process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace millrace {

struct RankWatchOptions {
  int rank = 0;
  int world = 1;
  bool hosts = false;                         // this process runs the store's server
  std::chrono::milliseconds beat{1000};       // between two heartbeats
  std::chrono::milliseconds silence{30'000};  // without a heartbeat, until a rank counts as dead
  std::chrono::milliseconds grace{8'000};     // for a rank to end by itself
};

class RankWatch {
 public:
  // `store` is a connection that nothing else uses.
  RankWatch(c10::intrusive_ptr<c10d::Store> store, const RankWatchOptions& options);
  // Marks this rank as left. The process with the store's server waits a few seconds for the other
  // ranks to leave.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Publishes why this rank ends, unless a reason is already published. Never throws.
  void publish_reason(const std::string& reason);
  // Called by a rank that lost its connection. Returns which rank caused it and why; takes a few
  // seconds.
  std::string find_reason(const std::string& symptom);

 private:
  void run();
  void wait_for_others();
  void beat(std::int64_t number);
  bool neighbour_is_silent();
  std::string silent_ranks();
  std::string published_reason();  // empty if there is none
  void end_process(const std::string& reason);
  bool pause(std::chrono::milliseconds time);  // false if the destructor has been called
  std::string key(const char* what, int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  RankWatchOptions options_;
  std::string heartbeat_;  // the next rank's last heartbeat, and when it changed
  std::chrono::steady_clock::time_point heartbeat_at_;
  std::atomic<bool> ending_{false};  // this rank is already ending by itself
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace millrace
