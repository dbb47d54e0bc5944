#include "libav.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>

namespace millrace::detail {
namespace {

// Without a destructor: the callback may run in FFmpeg's own threads, also while they exit.
thread_local char complaint[256];

void keep_first_complaint(void* object, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_ERROR || complaint[0] != '\0') return;
  int used = 0;
  if (object != nullptr) {
    const AVClass* type = *static_cast<const AVClass**>(object);
    if (type != nullptr && type->item_name != nullptr) {
      const char* name = type->item_name(object);
      used = std::snprintf(complaint, sizeof complaint, "%s: ", name != nullptr ? name : "libav");
    }
  }
  if (used < 0 || used >= static_cast<int>(sizeof complaint)) return;
  std::vsnprintf(complaint + used, sizeof complaint - static_cast<std::size_t>(used), format,
                 arguments);
}

}  // namespace

void capture_av_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(keep_first_complaint); });
}

std::string take_av_complaint() {
  std::string text = complaint;
  complaint[0] = '\0';
  while (!text.empty() && (text.back() == '\n' || text.back() == '.' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

}  // namespace millrace::detail
