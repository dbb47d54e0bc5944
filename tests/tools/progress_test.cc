// The bar and the command line that all programs share.
#include "tools/cli/progress.h"

#include "tests/reference.h"
#include "tools/cli/command_line.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>

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

struct Called {
  int code = 0;
  int number = 0;
  bool flag = false;
  std::vector<int> list;
};

Called call(
    std::vector<std::string> arguments, const std::function<int()>& body = [] { return 0; }) {
  Called called;
  CommandLine line("program", "A program.", "\nExamples:\n  program --number 3\n");
  line.options().add("--number", called.number, "");
  line.options().add("--list", called.list, "");
  line.options().flag("--flag", called.flag, "");
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  called.code = line.run(static_cast<int>(argv.size()), argv.data(), body);
  return called;
}

TEST(CommandLine, ReadsConfigurationFilesAsFlags) {
  TemporaryFolder folder;
  std::string config = (folder / "run.toml").string();
  std::ofstream(config) << "number = 7\nflag = true\nlist = [1, 2, 3]\n";
  Called called = call({"--config", config});
  EXPECT_EQ(called.code, 0);
  EXPECT_EQ(called.number, 7);
  EXPECT_TRUE(called.flag);
  EXPECT_EQ(called.list, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(call({"--number", "9", "--config=" + config}).number, 9) << "the command line wins";
}

TEST(CommandLine, WritesAConfigurationThatReadsBackToTheBit) {
  TemporaryFolder folder;
  struct Values {
    double third = 1.0 / 3, tiny = 3e-45;
    bool yes = true, no = false;
    std::string text = "a \"quoted\" name";
    std::vector<int> list{1, 2}, none{};
    std::string empty{};
  };
  auto declare_all = [](const Options& options, Values& o) {
    options.group("Numbers").add("--third", o.third, "a number");
    options.group("Numbers").add("--tiny", o.tiny, "another");
    options.group("Words").add("--yes", o.yes, "");
    options.group("Words").add("--no", o.no, "");
    options.group("Words").add("--text", o.text, "");
    options.group("Lists").add("--list", o.list, "");
    options.group("Lists").add("--none", o.none, "");
    options.group("Lists").add("--empty", o.empty, "");
  };
  Values written{.yes = false, .no = true};
  const CommandLine writer("program", "A program.", "");
  declare_all(writer.options(), written);
  const std::string file = (folder / "run.toml").string();
  std::ofstream(file) << CommandLine::toml(writer.options());
  Values read{.third = 0, .tiny = 0, .text = "", .list = {}};
  CommandLine line("program", "A program.", "");
  declare_all(line.options(), read);
  std::vector<std::string> arguments{"program", "--config", file};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  ASSERT_EQ(line.run(3, argv.data(), [] { return 0; }), 0) << CommandLine::toml(writer.options());
  EXPECT_EQ(read.third, written.third);
  EXPECT_EQ(read.tiny, written.tiny);
  EXPECT_FALSE(read.yes);
  EXPECT_TRUE(read.no);
  EXPECT_EQ(read.text, written.text);
  EXPECT_EQ(read.list, written.list);
  EXPECT_TRUE(read.none.empty());
}

TEST(CommandLine, EndsWithTheCodesThatScriptsKnow) {
  EXPECT_EQ(call({}).code, 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(call({"--nunber", "3"}).code, 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("did you mean --number?"),
            std::string::npos);
  testing::internal::CaptureStderr();
  EXPECT_EQ(call({}, []() -> int { throw Error("wrong").kind(ErrorKind::usage); }).code, 2);
  EXPECT_EQ(call({}, []() -> int { throw Error("failed").at("a.png"); }).code, 1);
  EXPECT_EQ(call({}, []() -> int { throw std::bad_alloc(); }).code, 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("program: a.png: failed"),
            std::string::npos);
}

}  // namespace
}  // namespace millrace
