// A value as text that reads back to the same bits: how --help, logs and configuration files show
// the values of options.
//
//   flag_text(1.0 / 3)                      // "0.3333333333333333"
//   flag_text(std::vector<int>{1, 2})       // "[1,2]"
#pragma once

#include <charconv>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace {

inline std::string flag_text(const std::string& value) {
  return value;
}
inline std::string flag_text(bool value) {
  return value ? "true" : "false";
}
template <class T>
requires std::is_arithmetic_v<T> std::string flag_text(T value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
template <class T>
std::string flag_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text.append(text.empty() ? "" : ",").append(flag_text(value));
  return "[" + text + "]";
}

}  // namespace millrace
