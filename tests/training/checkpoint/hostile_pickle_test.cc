// Pickles that are small in the file and large in memory, or slow to read.
#include "tests/reference.h"
#include "tests/training/checkpoint/checkpoint_samples.h"

#include <ctime>

#include <sys/resource.h>

namespace millrace {
namespace {

long peak_kilobytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::string text_opcode(const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return "X" + std::string(reinterpret_cast<const char*>(&size), 4) + text;
}

std::string repeated(const std::string& what, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += what;
  return all;
}

// A list at depth `depth`, inside of lists.
std::string nested(int depth) {
  return repeated("]", depth + 1) + repeated("a", depth) + ".";
}

TEST(HostilePickle, IsNestedAtMost100Levels) {
  EXPECT_EQ(message_of_pickle(nested(100)), "read");
  EXPECT_NE(message_of_pickle(nested(101)).find("nested deeper than 100 levels"),
            std::string::npos);
  EXPECT_NE(message_of_pickle(nested(300'000)).find("nested deeper than 100"), std::string::npos);
  // Tuples close inside out, and dictionaries nest by key as well as by value.
  EXPECT_NE(message_of_pickle(")" + repeated("\x85", 200) + ".").find("nested deeper"),
            std::string::npos);
  EXPECT_NE(message_of_pickle(repeated("}N", 200) + "N" + repeated("s", 200) + ".").find("nested"),
            std::string::npos);
  EXPECT_NE(message_of_pickle(repeated("(", 300'000) + ".").find("does not end as it should"),
            std::string::npos);
}

// What Python shares is one object there; here each use is a copy. A few bytes must not become
// gigabytes.
TEST(HostilePickle, ExpandsToALimitedMultipleOfItsSize) {
  const long before = peak_kilobytes();
  const std::string expands = "expands to much more than its pickle holds";
  // One text of 100 kB, used 100,000 times: 10 GB.
  const std::string text = text_opcode(std::string(100'000, 'a')) + "q\x01";
  EXPECT_NE(message_of_pickle("](" + text + repeated("h\x01", 100'000) + "e.").find(expands),
            std::string::npos);
  // The same text as bytes: each call of encode() makes a copy while the pickle is still read.
  const std::string encode = "c_codecs\nencode\nq\x02" + text + "\x85q\x03";
  EXPECT_NE(
      message_of_pickle("](" + encode + repeated("h\x02h\x03R", 100'000) + "e.").find(expands),
      std::string::npos);
  // A tuple of 100,000, copied by torch.Size again and again.
  const std::string tuple = "(" + repeated("N", 100'000) + "tq\x01\x85q\x03";
  const std::string size = "ctorch\nSize\nq\x02";
  EXPECT_NE(message_of_pickle("](" + size + tuple + repeated("h\x02h\x03R", 100'000) + "e.")
                .find(expands),
            std::string::npos);
  // 2^22 values in 200 bytes: fewer than the 8 million that are allowed for a large pickle.
  std::string doubled = "]q";
  doubled += '\0';
  for (char i = 0; i < 20; ++i) {
    doubled += std::string("](h") + i + "h" + i + "eq" + static_cast<char>(i + 1);
  }
  EXPECT_NE(message_of_pickle("](" + doubled + "e.").find(expands), std::string::npos);
  EXPECT_LT(peak_kilobytes() - before, 1'000'000);
}

TEST(HostilePickle, IsReadInLinearTime) {
  const std::clock_t start = std::clock();  // processor time: other programs do not count
  // 200,000 integers as keys, in falling order.
  std::string keys = "}(";
  for (std::int32_t i = 200'000; i > 0; --i) {
    keys += "J" + std::string(reinterpret_cast<const char*>(&i), 4) + "N";
  }
  EXPECT_EQ(message_of_pickle(keys + "u."), "read");
  // A call with 200,000 arguments that are ignored, made 200,000 times.
  const std::string arguments =
      "ccollections\nOrderedDict\nq\x01(" + repeated("]", 200'000) + "tq\x02";
  EXPECT_NE(message_of_pickle("](" + arguments + repeated("h\x01h\x02R", 200'000) + "e.")
                .find("expands to much more"),
            std::string::npos);
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 30);
}

TEST(HostilePickle, MemoIsBounded) {
  const std::string far("]r\xff\xff\xff\xff.", 7);
  EXPECT_NE(message_of_pickle(far).find("stores a value at place 4294967295"), std::string::npos);
  const std::string near("]r\x05\0\0\0j\x05\0\0\0\x86.", 13);
  EXPECT_EQ(message_of_pickle(near), "read");
}

}  // namespace
}  // namespace millrace
