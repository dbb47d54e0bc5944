// Brings finished shards to the disk while the next ones are made. Waiting for a disk takes no
// processor time, and none of the loader's either.
#pragma once

#include <millrace/datasets/caches/cache_writer.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace millrace {

class Finisher {
 public:
  // `after` is called when a shard is on the disk, in the same thread.
  explicit Finisher(std::function<void()> after)
      : after_(std::move(after)), thread_([this] { run(); }) {}
  ~Finisher() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Finisher(const Finisher&) = delete;
  Finisher& operator=(const Finisher&) = delete;

  // Waits only if several are on their way already. Throws what went wrong with an earlier one.
  void finish(ShardWriter shard) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < most_ || problem_; });
    rethrow();
    queue_.push_back(std::move(shard));
    changed_.notify_all();
  }
  // Until all are on the disk.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return (queue_.empty() && !busy_) || problem_; });
    rethrow();
  }

 private:
  void rethrow() {
    if (problem_) std::rethrow_exception(problem_);
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty() || problem_) return;
      ShardWriter shard = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      std::exception_ptr problem;
      try {
        shard.finish();
        after_();
      } catch (...) {
        problem = std::current_exception();
      }
      lock.lock();
      busy_ = false;
      if (problem) problem_ = problem;
      changed_.notify_all();
      if (problem_) return;
    }
  }

  static constexpr std::size_t most_ = 2;
  std::function<void()> after_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ShardWriter> queue_;
  bool busy_ = false, closing_ = false;
  std::exception_ptr problem_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace millrace
