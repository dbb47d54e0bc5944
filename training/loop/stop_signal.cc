#include <millrace/training/loop/stop_signal.h>

#include <array>
#include <atomic>
#include <csignal>

namespace millrace {

namespace {

constexpr std::array<int, 2> signals{SIGINT, SIGTERM};
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a signal handler must not take a lock
std::array<struct sigaction, 2> previous_actions;
std::atomic<StopSignal*> innermost{nullptr};

void kill_process(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void on_signal(int number) {
  if (received_signal.exchange(number) != 0) kill_process(number);
}

}  // namespace

int StopSignal::received() {
  return received_signal.load();
}

StopSignal::StopSignal(std::function<void()> on_timeout, std::chrono::milliseconds timeout)
    : on_timeout_(std::move(on_timeout)), outer_(innermost.exchange(this)) {
  if (outer_ == nullptr) received_signal = 0;
  for (std::size_t i = 0; outer_ == nullptr && i < signals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signals[i], &action, &previous_actions[i]);
  }
  watcher_ = std::thread([this, timeout] { watch(timeout); });
}

StopSignal::StopSignal(std::chrono::milliseconds timeout)
    : StopSignal([] { kill_process(received()); }, timeout) {}

StopSignal::~StopSignal() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  watcher_.join();
  innermost = outer_;
  if (outer_ != nullptr) return;
  for (std::size_t i = 0; i < signals.size(); ++i)
    sigaction(signals[i], &previous_actions[i], nullptr);
}

void StopSignal::watch(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(50), [this] { return over_; })) {
    if (received() == 0 || innermost != this) continue;
    ended_.wait_for(lock, timeout, [this] { return over_ || innermost != this; });
    if (over_) return;
    if (innermost != this) continue;
    on_timeout_();
    return;
  }
}

}  // namespace millrace
