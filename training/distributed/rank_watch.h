// Why the other ranks went away. Every rank gives a sign of life once a second, in the store, and
// looks after its neighbour; a rank that ends says why; the first reason given is everybody's. A
// rank whose work hangs because of one that is silent is ended here, from a thread of its own.
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
  bool hosts = false;  // the store lives in this process
  std::chrono::milliseconds beat{1000};
  std::chrono::milliseconds silence{30'000};  // after which a rank is taken for dead
  std::chrono::milliseconds grace{8'000};     // in which a rank may end on its own
};

class RankWatch {
 public:
  // `store` is this object's own connection.
  RankWatch(c10::intrusive_ptr<c10d::Store> store, const RankWatchOptions& options);
  // Says goodbye. The host of the store stays a few seconds more, until the others have left.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Tells the others why this rank ends. Never throws.
  void tell(const std::string& reason);
  // For a rank that lost its connection: who is to blame, found out in a few seconds.
  std::string find_reason(const std::string& symptom);

 private:
  void run();
  void wait_for_others();
  void beat(std::int64_t number);
  bool neighbour_is_silent();
  std::string name_the_silent();
  std::string agreed_reason();  // empty if nobody has given one
  void end_process(const std::string& reason);
  bool pause(std::chrono::milliseconds time);  // false if this object is to end
  std::string key(const char* what, int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  RankWatchOptions options_;
  std::string heard_;  // the neighbour's last sign of life
  std::chrono::steady_clock::time_point heard_at_;
  std::atomic<bool> ending_{false};  // this rank ends on its own account
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace millrace
