// Decodes text files to UTF-8 strings: checks the encoding, removes a byte order mark, and converts
// line ends to "\n".
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

// Returns an Error if the bytes are not UTF-8; it says what they look like (UTF-16, Latin-1, ...).
Status decode_text(std::span<const std::byte> bytes, std::string& text);

// The offset of the first byte that is not part of well-formed UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace millrace
