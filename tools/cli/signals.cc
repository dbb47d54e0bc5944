#include "tools/cli/signals.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

namespace millrace {

namespace {

// A signal handler may touch lock-free atomics only.
std::atomic<int> signal_received{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

void Signals::watch() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    int none = 0;
    if (!signal_received.compare_exchange_strong(none, signal)) _exit(128 + signal);
  };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

int Signals::received() {
  return signal_received.load(std::memory_order_relaxed);
}

}  // namespace millrace
