#include "tests/faults/guarded_call.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void run_child(int to, const GuardLimits& limits,
                            const std::function<std::string()>& call) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Twice the limit: what is mapped but never touched is not held against the file.
  const auto bytes = static_cast<rlim_t>(2 * limits.megabytes * 1048576);
  const rlimit most{bytes, bytes};
  setrlimit(RLIMIT_AS, &most);
#else
  (void)limits;
#endif
  const std::string text = call();
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(to, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  std::exit(0);
}

// Reads until the child ends or its time is up; true: in time.
bool read_all(int from, double seconds, std::string& text) {
  const auto start = Clock::now();
  for (;;) {
    const double left = seconds - seconds_since(start);
    pollfd waiting{from, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left * 1000) + 1) == 0) return false;
    char chunk[4096];
    const ssize_t n = read(from, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text.append(chunk, static_cast<std::size_t>(n));
  }
}

}  // namespace

GuardedResult guarded_call(const GuardLimits& limits, const std::function<std::string()>& call) {
  GuardedResult result;
  int ends[2];
  if (pipe(ends) != 0) return {.fault = "cannot make a pipe"};
  std::fflush(nullptr);
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child < 0) return {.fault = "cannot make a process"};
  if (child == 0) {
    close(ends[0]);
    run_child(ends[1], limits, call);
  }
  close(ends[1]);
  const bool in_time = read_all(ends[0], limits.seconds, result.text);
  if (!in_time) kill(child, SIGKILL);
  close(ends[0]);
  int state = 0;
  rusage used{};
  wait4(child, &state, 0, &used);
  result.seconds = seconds_since(start);
  result.megabytes = static_cast<double>(used.ru_maxrss) / 1024;
  char text[100];
  if (!in_time) {
    std::snprintf(text, sizeof text, "took longer than %g s", limits.seconds);
    result.fault = text;
  } else if (WIFSIGNALED(state)) {
    result.fault = "crashed (signal " + std::to_string(WTERMSIG(state)) + ")";
  } else if (WEXITSTATUS(state) != 0) {
    result.fault = "ended with code " + std::to_string(WEXITSTATUS(state));
  } else if (result.megabytes > limits.megabytes) {
    std::snprintf(text, sizeof text, "took %.0f MB", result.megabytes);
    result.fault = text;
  }
  return result;
}

}  // namespace millrace
