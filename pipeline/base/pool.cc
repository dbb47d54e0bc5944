#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/pool.h>

#include <algorithm>
#include <string>
#include <thread>

#include <taskflow/taskflow.hpp>

namespace millrace {

namespace {

std::size_t checked(int threads) {
  if (threads < 0 || threads > 4096) {
    throw Error("a pool needs 0 to 4096 threads, but got " + std::to_string(threads))
        .kind(ErrorKind::usage);
  }
  return threads > 0 ? static_cast<std::size_t>(threads)
                     : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

Pool::Pool(int threads)
    : owned_(std::make_unique<tf::Executor>(checked(threads))), executor_(owned_.get()) {}
Pool::Pool(tf::Executor& borrowed) : executor_(&borrowed) {}
Pool::~Pool() = default;

std::shared_ptr<Pool> Pool::shared() {
  static auto pool = std::make_shared<Pool>();
  return pool;
}

int Pool::threads() const {
  return static_cast<int>(executor_->num_workers());
}
int Pool::this_worker() const {
  return executor_->this_worker_id();
}

}  // namespace millrace
