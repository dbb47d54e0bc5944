#include <millrace/pipeline/base/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include <taskflow/taskflow.hpp>

namespace millrace {

namespace {

// Shared with the helper tasks: one that starts late finds no work, perhaps after the call
// returned.
struct Work {
  std::int64_t count = 0;
  const std::function<void(std::int64_t)>* function = nullptr;
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::condition_variable idle;
  int busy = 0;  // number of helper tasks that are running
  std::exception_ptr failure;

  void run() noexcept {
    for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        (*function)(i);
      } catch (...) {
        next.store(count);
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }
  void help() noexcept {
    {
      std::lock_guard lock(mutex);
      if (next.load() >= count) return;
      ++busy;
    }
    run();
    std::lock_guard lock(mutex);
    if (--busy == 0) idle.notify_all();
  }
};

}  // namespace

void parallel_for(Pool& pool, std::int64_t count,
                  const std::function<void(std::int64_t)>& function) {
  auto work = std::make_shared<Work>();
  work->count = count;
  work->function = &function;
  std::int64_t helpers = std::min<std::int64_t>(pool.threads(), count - 1);
  for (std::int64_t i = 0; i < helpers; ++i) {
    pool.executor().silent_async([work] { work->help(); });
  }
  work->run();
  std::unique_lock lock(work->mutex);
  work->idle.wait(lock, [&] { return work->busy == 0; });
  if (work->failure) std::rethrow_exception(work->failure);
}

}  // namespace millrace
