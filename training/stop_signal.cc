#include <millrace/training/stop_signal.h>

#include <array>
#include <atomic>
#include <csignal>

namespace millrace {

namespace {

constexpr std::array<int, 2> signals{SIGINT, SIGTERM};
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // or the handler must not touch it
std::array<struct sigaction, 2> former;

void on_signal(int number) {
  if (received_signal.exchange(number) != 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

}  // namespace

int StopSignal::received() {
  return received_signal.load();
}

StopSignal::StopSignal(std::function<void()> stuck, std::chrono::milliseconds patience)
    : stuck_(std::move(stuck)) {
  received_signal = 0;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signals[i], &action, &former[i]);
  }
  watcher_ = std::thread([this, patience] { watch(patience); });
}

StopSignal::~StopSignal() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  watcher_.join();
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &former[i], nullptr);
}

void StopSignal::watch(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(50), [this] { return over_; })) {
    if (received() == 0) continue;
    if (!ended_.wait_for(lock, patience, [this] { return over_; })) stuck_();
    return;
  }
}

}  // namespace millrace
