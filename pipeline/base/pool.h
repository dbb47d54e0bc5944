// The one thread pool: a Taskflow executor, shared by every loader and tool of a program. An
// embedding program can hand in its own.
//
//   auto pool = std::make_shared<Pool>(4);
//   Loader train(a, {.pool = pool}), valid(b, {.pool = pool});
#pragma once

#include <memory>

namespace tf {
class Executor;
}

namespace millrace {

class Pool {
 public:
  // `threads` = 0: one per core.
  explicit Pool(int threads = 0);
  // Uses somebody else's executor, which must outlive the pool.
  explicit Pool(tf::Executor& borrowed);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The pool that loaders use when they are given none.
  static std::shared_ptr<Pool> shared();

  int threads() const;
  // Which worker the caller is, or -1 outside the pool.
  int this_worker() const;
  tf::Executor& executor() { return *executor_; }

 private:
  std::unique_ptr<tf::Executor> owned_;
  tf::Executor* executor_;
};

}  // namespace millrace
