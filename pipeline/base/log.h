// The only logger. Lines go to stderr with a level; a program can redirect them.
//
//   set_log_level(LogLevel::warning);
//   log(LogLevel::warning, "clips/a.mp4: 3 damaged packets skipped");
#pragma once

#include <functional>
#include <string>

namespace millrace {

enum class LogLevel { debug, info, warning, error, off };

// Logs one line. Control characters are shown as \\n or \\x1b.
void log(LogLevel level, const std::string& message);
// Drops lines below this level; the default is `info`.
void set_log_level(LogLevel level);
// Sends lines to `sink` instead of stderr; an empty function restores stderr.
void set_log_sink(std::function<void(LogLevel, const std::string&)> sink);

}  // namespace millrace
