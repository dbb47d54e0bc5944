// The program train_vqgan from outside: told to stop, called wrongly, on a full disk. Killed with
// -9 it is in tests/faults/train_killed.py.
#include "tests/training/child_program.h"
#include "tests/training/tiny_command.h"

#include <millrace/training/checkpoint.h>

#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <torch/torch.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

class TrainVqgan : public testing::Test {
 protected:
  void SetUp() override { make_pictures(folder_ / "pictures", 14); }

  std::vector<std::string> arguments(const std::string& results, int steps,
                                     const std::vector<std::string>& more = {}) const {
    return tiny_command(folder_ / "pictures", folder_ / results, steps, more);
  }
  std::string metrics(const std::string& results) const {
    return text_of(folder_ / results / "metrics.jsonl");
  }
  void wait_for_steps(const std::string& results, const std::string& step) const {
    const std::string wanted = c10::str("{\"step\":", step, ",");
    for (int i = 0; i < 3000 && metrics(results).find(wanted) == std::string::npos; ++i) {
      std::this_thread::sleep_for(20ms);
    }
  }
  ChildProgram start(const std::vector<std::string>& all, std::size_t max_file = 0) const {
    return {MILLRACE_TRAIN_VQGAN, all, folder_ / "errors", {}, max_file};
  }
  int run(const std::vector<std::string>& all) const { return start(all).wait(); }
  std::string last_line() const {
    std::istringstream lines(text_of(folder_ / "errors"));
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return last;
  }

  // Lines of the last run that are its verdict, not its log.
  std::int64_t own_lines() const {
    std::istringstream lines(text_of(folder_ / "errors"));
    std::int64_t count = 0;
    for (std::string line; std::getline(lines, line);) count += line.starts_with("train_vqgan: ");
    return count;
  }
  std::map<std::string, std::string> contents(const std::string& results) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / results)) {
      all[entry.path().filename().string()] = text_of(entry.path());
    }
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainVqgan, ToldToStopLeavesACheckpointAndGoesOn) {
  ChildProgram program = start(arguments("results", 1'000'000));
  wait_for_steps("results", "5");
  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGTERM);
  EXPECT_NE(last_line().find("--resume"), std::string::npos) << last_line();
  EXPECT_EQ(run(arguments("results", 1, {"--resume"})), 0) << last_line();  // nothing left to do
}

TEST_F(TrainVqgan, SaysInOneLineWhatIsWrong) {
  auto expect = [&](int code, const std::vector<std::string>& all, const std::string& part) {
    EXPECT_EQ(run(all), code);
    EXPECT_NE(last_line().find(part), std::string::npos) << last_line() << "\nwanted: " << part;
    EXPECT_EQ(own_lines(), 1) << text_of(folder_ / "errors");
  };
  expect(2, arguments("a", 4, {"--batch-size", "40"}), "14 files, 11 of them for training");
  make_pictures(folder_ / "one", 1);
  std::vector<std::string> one = arguments("a", 4);
  one[0] = (folder_ / "one").string();
  expect(2, one, "there are 1 files, 0 of them for training: too few for batches of 3");
  one[0] = (folder_ / "nowhere").string();
  expect(2, one, "nowhere: ");
  expect(2, arguments("a", 4, {"--image-size", "18", "--layers", "2"}), "multiple of 4");
  expect(2, arguments("a", 4, {"--codebook-size", "100"}), "must be a power of 2, but is 100");
  expect(2, arguments("a", 4, {"--lrr", "1"}), "there is no flag --lrr; did you mean --lr?");
  expect(2, arguments("a", 4, {"--batch-size", "0"}), "--batch-size: 0 is too small (see: ");
  expect(2, arguments("a", 4, {"--optimizer", "sgd"}), "--optimizer: sgd not in {adam,adamw,lion}");
  expect(1, arguments("a", 4, {"--vgg", (folder_ / "none.pt").string()}),
         "none.pt: checkpoint: cannot");
  expect(1, arguments("a", 4, {"--weights", (folder_ / "none.pt").string()}),
         "none.pt: checkpoint: cannot");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));  // nothing of all that left a trace
}

TEST_F(TrainVqgan, LosesNothingOfAnEarlierRun) {
  ASSERT_EQ(run(arguments("done", 2)), 0) << last_line();
  const auto before = contents("done");
  EXPECT_EQ(run(arguments("done", 4)), 2);
  EXPECT_NE(last_line().find("done: holds an earlier run"), std::string::npos) << last_line();
  EXPECT_EQ(contents("done"), before);
  EXPECT_EQ(run(arguments("done", 4, {"--resume", "--codebook-size", "32"})), 1);
  EXPECT_NE(last_line().find("checkpoint.2.pt: 'quantizer.mask' is [4], the model's is [5]"),
            std::string::npos)
      << last_line();
  EXPECT_EQ(contents("done"), before);  // the configuration too
  std::ofstream(folder_ / "done" / "checkpoint.2.pt") << "no longer a checkpoint";
  EXPECT_EQ(run(arguments("done", 4, {"--resume"})), 1);
  EXPECT_NE(last_line().find("none of its 1 checkpoints can be read"), std::string::npos);
  // Files that are not ours are neither resumed from nor cleared.
  for (const char* flag : {"--resume", "--clear"}) {
    std::vector<std::string> all = arguments("pictures", 4);
    all.emplace_back(flag);
    EXPECT_EQ(run(all), 2);
    EXPECT_NE(last_line().find("no run of ours"), std::string::npos) << last_line();
  }
  EXPECT_EQ(contents("pictures").size(), 14U);
}

// A limit on the size of files stands in for a full disk: a checkpoint does not fit, a log does.
TEST_F(TrainVqgan, KeepsTheOldCheckpointWhenTheDiskIsFull) {
  ASSERT_EQ(run(arguments("full", 4)), 0) << last_line();
  const std::string old = text_of(folder_ / "full" / "checkpoint.4.pt");
  EXPECT_EQ(start(arguments("full", 8, {"--resume"}), old.size() / 2).wait(), 1);
  EXPECT_EQ(own_lines(), 1) << text_of(folder_ / "errors");
  EXPECT_NE(last_line().find(".pt: cannot write "), std::string::npos) << last_line();
  EXPECT_NE(last_line().find("(File too large)"), std::string::npos) << last_line();
  EXPECT_EQ(text_of(folder_ / "full" / "checkpoint.4.pt"), old);
  for (const auto& [name, content] : contents("full")) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
  EXPECT_EQ(run(arguments("full", 8, {"--resume"})), 0) << last_line();  // there is room again
}

TEST_F(TrainVqgan, ItsConfigurationIsACommandLine) {
  ASSERT_EQ(run(arguments("first", 3, {"--betas", "0.5", "0.75"})), 0) << last_line();
  const std::string file = (folder_ / "first" / "config.toml").string();
  ASSERT_EQ(run({"--config", file, "--results-folder", (folder_ / "second").string()}), 0)
      << last_line();
  EXPECT_EQ(metrics("first"), metrics("second"));
  auto without_folder = [&](const std::string& results) {
    std::istringstream lines(text_of(folder_ / results / "config.toml"));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("results-folder")) kept.append(line).append("\n");
    }
    return kept;
  };
  EXPECT_EQ(without_folder("first"), without_folder("second"));
  EXPECT_NE(without_folder("first").find("\nbetas = [0.5, 0.75]\n"), std::string::npos)
      << without_folder("first");
  EXPECT_NE(without_folder("first").find("\nema-power = 0.6666666666666666\n"), std::string::npos)
      << without_folder("first");
}

}  // namespace
}  // namespace millrace
