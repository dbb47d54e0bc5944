// Text files to UTF-8 strings: the encoding is checked, a byte order mark dropped, and line ends
// made "\n".
//
//   std::string caption;
//   Status status = decode_text(bytes, caption);
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

// Fails on anything that is not UTF-8, and says what it looks like instead (UTF-16, Latin-1, ...).
Status decode_text(std::span<const std::byte> bytes, std::string& text);

// The offset of the first byte that is not part of well-formed UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace millrace
