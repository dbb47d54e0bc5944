#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace millrace {

namespace {

struct Logger {
  std::shared_ptr<spdlog::logger> stderr_logger = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>("millrace", std::move(sink));
    logger->set_pattern("[%H:%M:%S] %^%l%$ %v");
    logger->set_level(spdlog::level::debug);
    logger->flush_on(spdlog::level::debug);
    return logger;
  }();
  std::mutex mutex;
  std::function<void(LogLevel, const std::string&)> sink;
  std::atomic<LogLevel> level{LogLevel::info};
};

// Never destroyed: destructors of other static objects may log.
Logger& logger() {
  static auto* instance = new Logger;
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

// Escapes control characters: a file name in a message must not end the line or control the
// terminal.
std::string one_line(std::string message) {
  auto steers = [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; };
  if (std::ranges::none_of(message, steers)) return message;
  std::string shown;
  for (char c : message) {
    constexpr char digits[] = "0123456789abcdef";
    if (c == '\n') {
      shown += "\\n";
    } else if (steers(c)) {
      shown += {'\\', 'x', digits[c >> 4], digits[c & 15]};
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace

void log(LogLevel level, const std::string& text) {
  Logger& to = logger();
  if (level < to.level.load(std::memory_order_relaxed)) return;
  std::string message = one_line(text);
  std::lock_guard lock(to.mutex);
  if (to.sink) {
    to.sink(level, message);
  } else {
    to.stderr_logger->log(to_spdlog(level), message);
  }
}

void set_log_level(LogLevel level) {
  logger().level = level;
}

void set_log_sink(std::function<void(LogLevel, const std::string&)> sink) {
  std::lock_guard lock(logger().mutex);
  logger().sink = std::move(sink);
}

}  // namespace millrace
