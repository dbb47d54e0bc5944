#include "tools/cli/progress.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace millrace {

namespace {

const char* name_of(LogLevel level) {
  return level == LogLevel::warning ? "warning" : level == LogLevel::error ? "error" : "info";
}

int columns_of(std::FILE* file) {
  winsize size{};
  bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 100;
}

}  // namespace

std::string in_time(double seconds) {
  auto s = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string in_bytes(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.2f} GB", bytes / 1e9);
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      terminal_(isatty(fileno(options_.to)) != 0),
      started_(Clock::now()),
      drawn_(started_) {
  marks_.push_back({started_, 0, 0});
  if (options_.quiet || !terminal_) return;
  // A log line overwrites the bar; the bar is drawn again below it.
  set_log_sink([this](LogLevel level, const std::string& text) {
    std::lock_guard lock(mutex_);
    fmt::print(options_.to, "\r\033[K{}: {}\n", name_of(level), text);
    if (shown_) draw();
  });
}

Progress::~Progress() {
  finish();
}

std::string Progress::line(const State& state, int columns) const {
  const Mark& from = marks_.front();
  double seconds = std::max(std::chrono::duration<double>(Clock::now() - from.at).count(), 1e-3);
  double rate = static_cast<double>(state.items - from.items) / seconds;
  double byte_rate = static_cast<double>(state.bytes - from.bytes) / seconds;
  std::int64_t done = options_.done + state.items;
  std::string numbers;
  double share = 0;
  if (options_.total > 0) {
    share = std::clamp(static_cast<double>(done) / static_cast<double>(options_.total), 0.0, 1.0);
    numbers = fmt::format("{:3.0f} %  {}/{}", std::floor(100 * share), done, options_.total);
  } else {
    numbers = std::to_string(done);
  }
  numbers +=
      fmt::format(fmt::runtime(rate < 10 ? "  {:.1f} {}/s" : "  {:.0f} {}/s"), rate, options_.unit);
  if (options_.files) numbers += fmt::format("  {:.1f} MB/s", byte_rate / 1e6);
  if (options_.total > 0 && rate > 0) {
    numbers += "  ETA " + in_time(static_cast<double>(options_.total - done) / rate);
  }
  if (options_.files) numbers += fmt::format("  errors {}", state.errors);
  if (!state.note.empty()) numbers += "  " + state.note;
  int room = columns - static_cast<int>(options_.what.size() + numbers.size()) - 6;
  if (options_.total <= 0 || room < 8) return options_.what + "  " + numbers;
  int width = std::min(room, 40);
  auto filled = static_cast<std::size_t>(share * width);
  std::string bar(static_cast<std::size_t>(width), '-');
  std::fill_n(bar.begin(), filled, '#');
  return fmt::format("{} [{}] {}", options_.what, bar, numbers);
}

void Progress::draw() {
  int columns = columns_of(options_.to);
  std::string text = line(state_, terminal_ ? columns : 0);
  if (terminal_) {
    fmt::print(options_.to, "\r\033[K{}", text.substr(0, static_cast<std::size_t>(columns - 1)));
    shown_ = true;
  } else {
    fmt::print(options_.to, "{}\n", text);
  }
  std::fflush(options_.to);
}

void Progress::update(const State& state) {
  std::lock_guard lock(mutex_);
  state_ = state;
  if (options_.quiet || finished_) return;
  auto now = Clock::now();
  auto every = terminal_ ? std::chrono::milliseconds(100) : options_.line_every;
  if (now - drawn_ < every) return;
  drawn_ = now;
  draw();
  marks_.push_back({now, state.items, state.bytes});
  while (marks_.size() > 2 && now - marks_[1].at > std::chrono::seconds(20)) marks_.pop_front();
}

void Progress::finish() {
  {
    std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    if (shown_) fmt::print(options_.to, "\r\033[K");
    std::fflush(options_.to);
    shown_ = false;
  }
  if (!options_.quiet && terminal_) set_log_sink({});
}

}  // namespace millrace
