// File names as people, logs and JSON can take them. A name need not be UTF-8.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

// The path as it is where it is UTF-8. Otherwise as a shell would take it, $'clips/a\xff.mp4': two
// names never become one, and the result can be pasted into a terminal.
std::string printable(std::string_view path);
inline std::string printable(const std::filesystem::path& path) {
  return printable(std::string_view(path.native()));
}

}  // namespace millrace
