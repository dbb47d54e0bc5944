// The progress bar.
#include "tools/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Progress, TellsShareRateTimeLeftAndErrors) {
  Progress progress({.what = "images", .total = 500, .quiet = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::string line = progress.line({.items = 205, .bytes = 61'200'000, .errors = 3}, 120);
  EXPECT_TRUE(line.starts_with("images [################")) << line;
  for (const char* part : {" 41 %  205/500", " items/s", " MB/s", "ETA 0:0", "errors 3"}) {
    EXPECT_NE(line.find(part), std::string::npos) << line;
  }
  EXPECT_LE(line.size(), 120U);
  EXPECT_EQ(progress.line({.items = 205}, 40).find('['), std::string::npos) << "no room for a bar";
}

TEST(Progress, TellsOfStepsWithoutFiles) {
  Progress progress(
      {.what = "steps", .total = 100, .unit = "steps", .files = false, .quiet = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const std::string line = progress.line({.items = 50, .note = "loss 0.5  data 0.1 %"}, 120);
  EXPECT_NE(line.find(" steps/s  ETA "), std::string::npos) << line;
  EXPECT_EQ(line.find("MB/s"), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with("  loss 0.5  data 0.1 %")) << line;
}

TEST(Progress, CountsWhatWasDoneBeforeForTheBarButNotForTheRate) {
  Progress progress({.what = "images", .total = 500, .done = 400, .quiet = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::string line = progress.line({.items = 50}, 120);
  EXPECT_NE(line.find("90 %  450/500"), std::string::npos) << line;
  // 50 items in at least 50 ms, however long the sleep took.
  std::size_t rate = line.find("450/500") + 7;
  EXPECT_LE(std::stod(line.substr(rate)), 1000) << line;
}

TEST(Progress, WritesPlainLinesWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress(
        {.what = "clips", .total = 4, .to = file, .line_every = std::chrono::milliseconds(1)});
    for (int i = 1; i <= 4; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      progress.update({.items = i});
    }
  }
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("100 %  4/4"), std::string::npos) << text;
}

TEST(Progress, SaysTimesAndBytesAsPeopleDo) {
  EXPECT_EQ(in_time(7.4), "0:07");
  EXPECT_EQ(in_time(754), "12:34");
  EXPECT_EQ(in_time(3723), "1:02:03");
  EXPECT_EQ(in_bytes(812), "812 B");
  EXPECT_EQ(in_bytes(61.2e6), "61.2 MB");
}

}  // namespace
}  // namespace millrace
