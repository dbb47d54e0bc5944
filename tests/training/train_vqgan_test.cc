// The program train_vqgan from outside: killed and resumed, told to stop, called wrongly.
#include "tests/reference.h"

#include <millrace/decoders/image_write.h>
#include <millrace/pipeline/random.h>
#include <millrace/training/checkpoint.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

void make_pictures(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    Array picture = Array::empty(DType::uint8, {20, 24, 3});
    Random random(1, 0, i, "picture");
    for (std::uint8_t& value : picture.as<std::uint8_t>())
      value = static_cast<std::uint8_t>(random());
    std::vector<std::byte> png;
    ASSERT_TRUE(encode_png(picture, {}, png).ok());
    std::ofstream(folder / (std::to_string(i) + ".png"), std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A run as a child process.
class Program {
 public:
  Program(const std::vector<std::string>& arguments, const std::filesystem::path& errors) {
    std::vector<std::string> all{MILLRACE_TRAIN_VQGAN};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ == 0) {
      const int file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      const int nothing = open("/dev/null", O_WRONLY);
      dup2(nothing, 1);
      dup2(file, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Program() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const { kill(child_, signal); }
  // The exit code, or 128 + the signal that killed it.
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
};

class TrainVqgan : public testing::Test {
 protected:
  void SetUp() override { make_pictures(folder_ / "pictures", 14); }

  std::vector<std::string> arguments(const std::string& results, int steps,
                                     std::vector<std::string> more = {}) const {
    std::vector<std::string> all{(folder_ / "pictures").string(),
                                 "--results-folder",
                                 (folder_ / results).string(),
                                 "--num-train-steps",
                                 std::to_string(steps),
                                 "--batch-size",
                                 "3",
                                 "--image-size",
                                 "16",
                                 "--dim",
                                 "16",
                                 "--layers",
                                 "1",
                                 "--discr-layers",
                                 "1",
                                 "--codebook-size",
                                 "16",
                                 "--encdec-num-resnet-blocks",
                                 "0",
                                 "--valid-frac",
                                 "0.2",
                                 "--checkpoint-every",
                                 "4",
                                 "--save-results-every",
                                 "10",
                                 "--threads",
                                 "1",
                                 "--workers",
                                 "1"};
    for (std::size_t i = 0; i < more.size(); ++i) {
      auto there = std::find(all.begin(), all.end(), more[i]);
      if (there == all.end()) {
        all.push_back(more[i]);
      } else {
        *++there = more[++i];  // another value for the same flag
      }
    }
    return all;
  }
  std::string metrics(const std::string& results) const {
    return text_of(folder_ / results / "metrics.jsonl");
  }
  void wait_for_steps(const std::string& results, const std::string& step) const {
    const std::string wanted = c10::str("{\"step\":", step, ",");
    for (int i = 0; i < 600 && metrics(results).find(wanted) == std::string::npos; ++i) {
      std::this_thread::sleep_for(20ms);
    }
  }
  int run(const std::vector<std::string>& all) { return Program(all, folder_ / "errors").wait(); }
  std::string last_line() const {
    std::istringstream lines(text_of(folder_ / "errors"));
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return last;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainVqgan, KilledAndResumedEqualsAStraightRun) {
  ASSERT_EQ(run(arguments("straight", 24)), 0) << last_line();
  for (const char* step : {"6", "15"}) {
    Program program(arguments("broken", 24, {"--resume"}), folder_ / "errors");
    wait_for_steps("broken", step);
    program.send(SIGKILL);
    EXPECT_EQ(program.wait(), 128 + SIGKILL);
  }
  ASSERT_EQ(run(arguments("broken", 24, {"--resume"})), 0) << last_line();
  EXPECT_EQ(metrics("straight"), metrics("broken"));
  const Value a = read_checkpoint(folder_ / "straight" / "vae.23.ema.pt");
  const Value b = read_checkpoint(folder_ / "broken" / "vae.23.ema.pt");
  for (const auto& [name, tensor] : a.as_dict()) {
    EXPECT_TRUE(torch::equal(tensor.as_tensor(), b[name.as_string()].as_tensor()))
        << name.as_string();
  }
}

TEST_F(TrainVqgan, ToldToStopLeavesACheckpointAndGoesOn) {
  Program program(arguments("results", 1'000'000), folder_ / "errors");
  wait_for_steps("results", "5");
  const auto begin = std::chrono::steady_clock::now();
  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_NE(last_line().find("--resume"), std::string::npos) << last_line();
  EXPECT_EQ(run(arguments("results", 1, {"--resume"})), 0) << last_line();  // nothing left to do
}

TEST_F(TrainVqgan, SaysInOneLineWhatIsWrong) {
  auto expect = [&](const std::vector<std::string>& all, const std::string& part) {
    const int code = run(all);
    EXPECT_TRUE(code == 1 || code == 2) << code;
    EXPECT_NE(last_line().find(part), std::string::npos) << last_line() << "\nwanted: " << part;
  };
  expect(arguments("a", 4, {"--batch-size", "40"}), "14 files, 11 of them for training");
  make_pictures(folder_ / "one", 1);
  std::vector<std::string> one = arguments("a", 4);
  one[0] = (folder_ / "one").string();
  expect(one, "too few for batches of 3");
  expect(arguments("a", 4, {"--image-size", "18", "--layers", "2"}), "multiple of 4");
  expect(arguments("a", 4, {"--vgg", (folder_ / "none.pt").string()}),
         "none.pt: checkpoint: cannot");
  ASSERT_EQ(run(arguments("done", 2)), 0) << last_line();
  expect(arguments("done", 4), "holds an earlier run");
  expect(arguments("done", 4, {"--resume", "--codebook-size", "32"}),
         "'quantizer.mask' is [4], the model's is [5]");
  std::ofstream(folder_ / "done" / "checkpoint.2.pt") << "no longer a checkpoint";
  expect(arguments("done", 4, {"--resume"}), "none of its 1 checkpoints can be read");
}

}  // namespace
}  // namespace millrace
