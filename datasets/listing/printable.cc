#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/text/text.h>

#include <algorithm>

namespace millrace {

std::string printable(std::string_view path) {
  bool plain = first_invalid_utf8(path) == std::string_view::npos && !path.starts_with("$'");
  if (plain) return std::string(path);
  constexpr char digits[] = "0123456789abcdef";
  std::string shown = "$'";
  while (!path.empty()) {
    std::size_t valid = std::min(first_invalid_utf8(path), path.size());
    for (char c : path.substr(0, valid)) {
      auto byte = static_cast<unsigned char>(c);
      if (c == '\\' || c == '\'') {
        shown += {'\\', c};
      } else if (byte < 0x20 || byte == 0x7F) {
        shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      } else {
        shown += c;
      }
    }
    path.remove_prefix(valid);
    if (path.empty()) break;
    auto byte = static_cast<unsigned char>(path[0]);
    shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    path.remove_prefix(1);
  }
  return shown + "'";
}

}  // namespace millrace
