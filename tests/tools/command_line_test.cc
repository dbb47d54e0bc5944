// Options, configuration files, hints and exit codes: what all programs share.
#include "tools/cli/command_line.h"

#include "tests/reference.h"
#include "tools/cli/hints.h"
#include "tools/cli/toml.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/version.h>

#include <fstream>
#include <new>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

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

TEST(CommandLine, PrintsHelpAndVersionToStdout) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(call({"--version"}, []() -> int { throw Error("ran"); }).code, 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            std::string("program (Millrace) ") + version + "\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(call({"--help"}, []() -> int { throw Error("ran"); }).code, 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("Examples:"), std::string::npos);
}

TEST(CommandLine, KnowsWhichSubcommandWasGiven) {
  CommandLine line("program", "A program.", "");
  int size = 0;
  line.subcommand("images", "Pictures.", "").add("--size", size, "size of a picture in pixels");
  line.subcommand("text", "Texts.", "");
  std::vector<std::string> arguments{"program", "images", "--size", "3"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  EXPECT_EQ(line.run(4, argv.data(), [&] { return line.command() == "images" ? 7 : 8; }), 7);
  EXPECT_EQ(size, 3);
}

TEST(Options, ListsWhatWasGivenAndWhatIsByDefault) {
  CommandLine line("program", "A program.", "");
  int count = 3, needed = 0;
  std::optional<double> weight;
  const Options options = line.options();
  options.group("Numbers").add("--count,-c", count, "number of things to make").positive();
  options.add("--needed", needed, "number without a default").required();
  options.add("--weight", weight, "weight of the loss; default: none");
  const std::vector<OptionInfo> all = options.list();
  ASSERT_EQ(all.size(), 4U);  // and --config
  EXPECT_EQ(all[1].name, "count");
  EXPECT_EQ(all[1].group, "Numbers");
  EXPECT_EQ(all[1].default_text, "3");
  EXPECT_TRUE(all[1].is_number && all[1].values.empty());
  EXPECT_EQ(all[2].default_text, "");
  EXPECT_EQ(all[3].default_text, "");
}

TEST(Toml, ReadsListsOverSeveralLinesAndSections) {
  std::istringstream file(
      "size = 24  # pixels\nnames = [\n  \"a\",  # one\n  \"b\",\n]\n[images]\nfast = true\n");
  const std::vector<TomlItem> items = read_toml(file);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0].values, std::vector<std::string>{"24"});
  EXPECT_EQ(items[1].values, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(items[2].section, "images");
  EXPECT_EQ(items[2].name, "fast");
}

TEST(Hints, NameTheNearestWordIfItIsNear) {
  EXPECT_EQ(nearest_name("--sise", {"--seed", "--size"}), "--size");
  EXPECT_EQ(nearest_name("--quiet", {"--seed", "--size"}), "");
  EXPECT_EQ(did_you_mean("size", "'"), "; did you mean 'size'?");
  EXPECT_EQ(did_you_mean(""), "");
}

}  // namespace
}  // namespace millrace
