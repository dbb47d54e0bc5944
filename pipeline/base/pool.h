// A thread pool: a Taskflow executor that several loaders share (LoaderOptions::pool). An embedding
// program can pass its own executor.
//
//   auto pool = std::make_shared<Pool>(4);
//   int threads = pool->threads();  // 4
#pragma once

#include <memory>

namespace tf {
class Executor;
}

namespace millrace {

class Pool {
 public:
  // Starts `threads` threads; 0: one per core.
  explicit Pool(int threads = 0);
  // Uses the executor of another owner, which must outlive the pool.
  explicit Pool(tf::Executor& borrowed);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The default pool of loaders, made at the first call.
  static std::shared_ptr<Pool> shared();

  int threads() const;
  // Number of the calling worker thread, 0..threads-1; -1 if the caller is no worker of this pool.
  int this_worker() const;
  tf::Executor& executor() { return *executor_; }

 private:
  std::unique_ptr<tf::Executor> owned_;
  tf::Executor* executor_;
};

}  // namespace millrace
