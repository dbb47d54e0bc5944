#include <millrace/decoders/text/text.h>

#include <cstdint>

namespace millrace {

namespace {

// The length of a well-formed sequence at the start of `text`, or 0. Overlong forms, surrogates
// and code points beyond U+10FFFF are not well-formed: the second byte's range tells them apart.
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  auto continues = [&](std::size_t i, int low, int high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    int low = lead == 0xE0 ? 0xA0 : 0x80;
    int high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    int low = lead == 0xF0 ? 0x90 : 0x80;
    int high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::string_view likely_encoding(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return "UTF-16";
  std::size_t zeros = 0;
  for (char c : text) zeros += c == '\0' ? 1 : 0;
  if (zeros > text.size() / 4) return "UTF-16 without a byte order mark, or binary data";
  return "Latin-1 or another 8-bit encoding";
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = sequence_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

Status decode_text(std::span<const std::byte> bytes, std::string& text) {
  std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t invalid = first_invalid_utf8(raw);
  if (invalid != std::string_view::npos) {
    return Error("not UTF-8 at byte " + std::to_string(invalid) + "; it looks like " +
                 std::string(likely_encoding(raw)))
        .stage("text")
        .hint("Convert it with: iconv -t UTF-8");
  }
  if (raw.starts_with("\xEF\xBB\xBF")) raw.remove_prefix(3);
  text.clear();
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\r') {
      text += raw[i];
    } else if (i + 1 == raw.size() || raw[i + 1] != '\n') {
      text += '\n';  // a lone carriage return ends a line too
    }
  }
  return {};
}

}  // namespace millrace
