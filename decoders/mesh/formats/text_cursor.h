// Private to the readers of text formats: a cursor over bytes without a terminating zero, with fast
// and exact number parsing that is independent of the locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <system_error>

namespace millrace::detail {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Within a line: a carriage return counts as a blank, so "\r\n" ends a line too.
inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
inline bool is_space(char c) {
  return is_blank(c) || c == '\n';
}

class TextCursor {
 public:
  explicit TextCursor(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  bool done() const { return at_ == end_; }
  char peek() const { return at_ == end_ ? '\n' : *at_; }
  bool at_line_end() const { return at_ == end_ || *at_ == '\n'; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  void advance() { ++at_; }
  void skip(std::size_t bytes) { at_ += bytes; }

  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  void skip_spaces() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }
  void skip_line() {
    const void* line_end = std::memchr(at_, '\n', left());
    at_ = line_end == nullptr ? end_ : static_cast<const char*>(line_end) + 1;
  }
  // Up to the next space; empty at the end of the line.
  std::string_view word() {
    skip_blanks();
    const char* start = at_;
    while (at_ != end_ && !is_space(*at_)) ++at_;
    return {start, static_cast<std::size_t>(at_ - start)};
  }

  // 1 for the first line. Counted only when it is needed for a message.
  std::size_t line_number() const {
    std::size_t lines = 1;
    for (const char* p = begin_; p < at_; ++p) lines += *p == '\n' ? 1 : 0;
    return lines;
  }

  // Skips blanks and reads a number that ends at a space. After false the cursor is somewhere on
  // the line.
  bool number(double& value);
  bool integer(std::int64_t& value) {
    skip_blanks();
    return digits(value) && ends_here();
  }
  // Reads a signed integer; any character may follow it.
  bool digits(std::int64_t& value);

 private:
  bool ends_here() const { return at_ == end_ || is_space(*at_); }
  bool slow_number(const char* start, double& value);

  const char *begin_, *at_, *end_;
};

inline bool TextCursor::digits(std::int64_t& value) {
  bool negative = at_ != end_ && *at_ == '-';
  if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
  if (at_ == end_ || !is_digit(*at_)) return false;
  std::int64_t result = 0;
  while (at_ != end_ && is_digit(*at_)) {
    if (result > (std::numeric_limits<std::int64_t>::max() - 9) / 10) return false;
    result = result * 10 + (*at_++ - '0');
  }
  value = negative ? -result : result;
  return true;
}

// Most numbers in files have few digits: then the digits and the power of ten are both exact as
// doubles, and one multiplication or division rounds correctly. Other numbers go to from_chars.
inline bool TextCursor::number(double& value) {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  skip_blanks();
  const char* start = at_;
  const char* p = at_;
  bool negative = p != end_ && *p == '-';
  if (p != end_ && (*p == '-' || *p == '+')) ++p;
  const char* first = p;
  std::uint64_t mantissa = 0;
  while (p != end_ && is_digit(*p)) mantissa = mantissa * 10 + static_cast<unsigned>(*p++ - '0');
  std::ptrdiff_t count = p - first;
  std::int64_t power = 0;
  if (p != end_ && *p == '.') {
    const char* fraction = ++p;
    while (p != end_ && is_digit(*p)) mantissa = mantissa * 10 + static_cast<unsigned>(*p++ - '0');
    power = fraction - p;
    count += p - fraction;
  }
  if (count == 0 || count > 19) return slow_number(start, value);
  if (p != end_ && (*p == 'e' || *p == 'E')) {
    at_ = p + 1;
    std::int64_t exponent = 0;
    if (!digits(exponent) || exponent > 999 || exponent < -999) return slow_number(start, value);
    power += exponent;
    p = at_;
  }
  if (mantissa > (std::uint64_t{1} << 53) || power < -22 || power > 22) {
    return slow_number(start, value);
  }
  at_ = p;
  double magnitude = static_cast<double>(mantissa);
  magnitude = power < 0 ? magnitude / powers[-power] : magnitude * powers[power];
  value = negative ? -magnitude : magnitude;
  return ends_here();
}

inline bool TextCursor::slow_number(const char* start, double& value) {
  if (start != end_ && *start == '+') ++start;
  auto [stop, problem] = std::from_chars(start, end_, value);
  if (problem == std::errc::invalid_argument) return false;
  at_ = stop;
  if (problem == std::errc::result_out_of_range) {
    // Underflow gives zero, as in other readers; overflow is found later as not finite.
    const char* mark = start;
    while (mark != stop && *mark != 'e' && *mark != 'E') ++mark;
    const char* first = start != stop && *start == '-' ? start + 1 : start;
    bool tiny = mark == stop ? *first == '0' || *first == '.' : mark + 1 < stop && mark[1] == '-';
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return ends_here();
}

}  // namespace millrace::detail
