// The one logger. Lines go to stderr with a level; a program can take them over.
#pragma once

#include <functional>
#include <string>

namespace millrace {

enum class LogLevel { debug, info, warning, error, off };

// One line: what would end it early or steer a terminal is shown as \\n or \\x1b.
void log(LogLevel level, const std::string& message);
// Lines under this level are dropped; `info` until it is called.
void set_log_level(LogLevel level);
// Sends lines to `sink` instead of stderr; an empty function brings stderr back.
void set_log_sink(std::function<void(LogLevel, const std::string&)> sink);

}  // namespace millrace
