// File names as valid UTF-8, for messages, logs and JSON. A file name may be any bytes.
//
//   std::string shown = printable(std::filesystem::path("clips/a.mp4"));
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

// A path that is UTF-8 is returned unchanged. Any other is quoted for a shell, $'clips/a\xff.mp4':
// different paths stay different, and the result can be pasted into a terminal.
std::string printable(std::string_view path);
inline std::string printable(const std::filesystem::path& path) {
  return printable(std::string_view(path.native()));
}

}  // namespace millrace
