// Commits finished shards to disk (fsync and rename) in a thread of its own, while the next shards
// are made.
#pragma once

#include <millrace/datasets/caches/cache_writer.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace millrace {

class ShardCommitQueue {
 public:
  // `after` is called in the queue's thread after each commit.
  explicit ShardCommitQueue(std::function<void()> after)
      : after_(std::move(after)), thread_([this] { run(); }) {}
  ~ShardCommitQueue() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ShardCommitQueue(const ShardCommitQueue&) = delete;
  ShardCommitQueue& operator=(const ShardCommitQueue&) = delete;

  // Blocks only if the queue is full. Throws the error of an earlier commit, if there was one.
  void commit(ShardWriter shard) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < most_ || problem_; });
    rethrow();
    queue_.push_back(std::move(shard));
    changed_.notify_all();
  }
  // Blocks until all shards are committed.
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
  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace millrace
