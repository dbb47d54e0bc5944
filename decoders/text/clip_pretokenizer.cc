#include <millrace/decoders/text/clip_pretokenizer.h>
#include <millrace/decoders/text/unicode.h>

#include <array>
#include <cstdint>
#include <utility>

namespace millrace::detail {

namespace {

using View = std::u32string_view;

// The character that an entity at the start of `text` stands for, and the entity's length; 0 if
// there is none.
std::pair<char32_t, std::size_t> read_entity(View text) {
  static constexpr std::array<std::pair<View, char32_t>, 6> named{{{U"&amp;", U'&'},
                                                                   {U"&lt;", U'<'},
                                                                   {U"&gt;", U'>'},
                                                                   {U"&quot;", U'"'},
                                                                   {U"&apos;", U'\''},
                                                                   {U"&nbsp;", U'\u00A0'}}};
  for (const auto& [name, c] : named) {
    if (text.starts_with(name)) return {c, name.size()};
  }
  if (!text.starts_with(U"&#")) return {0, 0};
  bool hex = text.size() > 2 && (text[2] == 'x' || text[2] == 'X');
  char32_t value = 0;
  std::size_t first = hex ? 3 : 2, i = first;
  for (; i < text.size() && i < first + 8; ++i) {
    char32_t c = text[i], digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (hex && to_lower(c) >= 'a' && to_lower(c) <= 'f') {
      digit = to_lower(c) - 'a' + 10;
    } else {
      break;
    }
    value = value * (hex ? 16 : 10) + digit;
  }
  bool closed = i > first && i < text.size() && text[i] == ';';
  // References to control characters, surrogates and values beyond Unicode are not resolved.
  bool plain = (value >= 0x20 && value < 0x7F) || (value >= 0xA0 && value < 0xD800) ||
               (value >= 0xE000 && value < 0xFDD0) || (value >= 0x10000 && value < 0x1FFFE);
  if (!closed || !plain) return {0, 0};
  return {value, i + 1};
}

std::u32string unescape(const std::u32string& text) {
  std::u32string result;
  for (std::size_t i = 0; i < text.size();) {
    auto [c, length] =
        text[i] == '&' ? read_entity(View(text).substr(i)) : std::pair<char32_t, std::size_t>();
    result += length > 0 ? c : text[i];
    i += length > 0 ? length : 1;
  }
  return result;
}

char32_t uncurl(char32_t c) {
  if (c == 0x2018 || c == 0x2019 || c == 0x201A || c == 0x201B || c == 0x02BC) return '\'';
  if (c == 0x201C || c == 0x201D || c == 0x201E || c == 0x201F) return '"';
  return c;
}

// Lower case that is not one code point for one: the dotted capital I becomes two code points, and
// a sigma at the end of a word has its own form.
void append_lower(const std::u32string& text, std::size_t i, std::u32string& out) {
  if (text[i] == 0x130) {
    out += U"i\u0307";
  } else if (text[i] == 0x3A3) {
    bool after = i > 0 && is_letter(text[i - 1]);
    bool before = i + 1 < text.size() && is_letter(text[i + 1]);
    out += after && !before ? U'\u03C2' : U'\u03C3';
  } else {
    out += to_lower(text[i]);
  }
}

std::size_t starts_with_any(View text) {
  for (View word :
       {View(U"<|startoftext|>"), View(U"<|endoftext|>"), View(U"'s"), View(U"'\u017F"),
        View(U"'t"), View(U"'re"), View(U"'ve"), View(U"'m"), View(U"'ll"), View(U"'d")}) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

std::size_t word_length(View text) {
  if (std::size_t fixed = starts_with_any(text); fixed > 0) return fixed;
  if (is_number(text[0])) return 1;
  bool letters = is_letter(text[0]);
  std::size_t length = 1;
  while (length < text.size()) {
    char32_t c = text[length];
    bool other = !is_letter(c) && !is_number(c) && !is_white_space(c);
    if (letters ? !is_letter(c) : !other) break;
    ++length;
  }
  return length;
}

}  // namespace

std::u32string clean_caption(std::string_view text) {
  std::u32string raw = unescape(unescape(decode_utf8(text)));
  std::u32string spaced;
  for (char32_t c : raw) {
    if (!is_white_space(c)) {
      spaced += uncurl(c);
    } else if (!spaced.empty() && spaced.back() != ' ') {
      spaced += ' ';
    }
  }
  if (!spaced.empty() && spaced.back() == ' ') spaced.pop_back();
  std::u32string result;
  for (std::size_t i = 0; i < spaced.size(); ++i) append_lower(spaced, i, result);
  return result;
}

std::vector<std::string> split_caption(View text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_white_space(text[i])) {
      ++i;
      continue;
    }
    std::size_t length = word_length(text.substr(i));
    std::string word;
    for (char32_t c : text.substr(i, length)) append_utf8(word, c);
    words.push_back(std::move(word));
    i += length;
  }
  return words;
}

}  // namespace millrace::detail
