#include <millrace/pipeline/log.h>

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

// Never destroyed: other statics may log while they go.
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

}  // namespace

void log(LogLevel level, const std::string& message) {
  Logger& to = logger();
  if (level < to.level.load(std::memory_order_relaxed)) return;
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
