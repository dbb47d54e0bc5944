// Runs a function in a process of its own with a limit on time and memory, so that whatever a file
// does to a decoder can be told.
#pragma once

#include <functional>
#include <string>

namespace millrace {

struct GuardLimits {
  double seconds = 10;
  double megabytes = 2048;
};

struct GuardedResult {
  std::string text{};   // what the function returned
  std::string fault{};  // "crashed (signal 11)", "took longer than 10 s", ...; empty: none
  double seconds = 0;
  double megabytes = 0;  // the largest the process ever was
};

// The process ends as programs do, so the leak sanitizer has its say.
GuardedResult guarded_call(const GuardLimits& limits, const std::function<std::string()>& call);

}  // namespace millrace
