// Private: the Unicode properties that tokenizers need, independent of the locale.
#pragma once

#include <string>
#include <string_view>

namespace millrace::detail {

bool is_letter(char32_t c);       // categories L*
bool is_number(char32_t c);       // categories N*
bool is_white_space(char32_t c);  // property White_Space
// The lower case if it is one code point; otherwise the character itself.
char32_t to_lower(char32_t c);

// `text` must be well-formed: see first_invalid_utf8.
std::u32string decode_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t c);

}  // namespace millrace::detail
