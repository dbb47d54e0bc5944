#include "tests/reference.h"

#include <millrace/decoders/text/text.h>

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string decode(std::string_view raw) {
  std::string text;
  Status status = decode_text(std::as_bytes(std::span(raw.data(), raw.size())), text);
  return status.ok() ? text : "error: " + std::string(status.error().what());
}

TEST(Text, DropsTheByteOrderMarkAndMakesLineEndsUniform) {
  EXPECT_EQ(decode("\xEF\xBB\xBF"
                   "a\r\nb\rc\n"),
            "a\nb\nc\n");
  EXPECT_EQ(decode(""), "");
  EXPECT_EQ(decode("\r"), "\n");
}

TEST(Text, NamesTheLikelyEncodingOfWhatIsNotUtf8) {
  EXPECT_NE(decode("caf\xE9").find("not UTF-8 at byte 3; it looks like Latin-1"),
            std::string::npos);
  EXPECT_NE(decode(std::string_view("\xFF\xFEh\0i\0", 6)).find("UTF-16"), std::string::npos);
}

// Python's decoder is the reference for every sequence of one to four bytes out of a set that has
// each boundary of the well-formedness table.
TEST(Text, AcceptsExactlyWhatPythonAccepts) {
  const std::string bytes(
      "\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF4\xF5"
      "\xFF",
      23);
  std::string script =
      "import itertools\n"
      "b = bytes([0x41,0x7F,0x80,0x8F,0x90,0x9F,0xA0,0xBF,0xC0,0xC1,0xC2,0xDF,0xE0,0xE1,0xEC,0xED,"
      "0xEE,0xEF,0xF0,0xF1,0xF4,0xF5,0xFF])\n"
      "out = []\n"
      "for n in (1, 2, 3, 4):\n"
      "  for t in itertools.product(b, repeat=n):\n"
      "    try: bytes(t).decode('utf-8'); out.append('1')\n"
      "    except UnicodeDecodeError: out.append('0')\n"
      "print(''.join(out), end='')\n";
  std::string expected = run_python(script);
  std::string actual;
  for (std::size_t n = 1; n <= 4; ++n) {
    std::size_t total = 1;
    for (std::size_t i = 0; i < n; ++i) total *= bytes.size();
    for (std::size_t code = 0; code < total; ++code) {
      std::string text(n, ' ');
      std::size_t rest = code;
      for (std::size_t i = n; i-- > 0; rest /= bytes.size()) text[i] = bytes[rest % bytes.size()];
      actual += first_invalid_utf8(text) == std::string::npos ? '1' : '0';
    }
  }
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_TRUE(actual == expected);
}

}  // namespace
}  // namespace millrace
