// Tests the training programs as processes: SIGTERM, wrong arguments, a full disk. SIGKILL is
// tested in tests/faults/train_killed.py.
#include "tests/training/programs/trainer_programs.h"

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/device/torch_api.h>

#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;

class TrainProgram : public testing::TestWithParam<TrainerProgram> {
 protected:
  void SetUp() override { GetParam().make_media(folder_ / "media", 14); }

  std::vector<std::string> arguments(const std::string& results, int steps,
                                     std::vector<std::string> more = {}) const {
    std::vector<std::string> all =
        GetParam().arguments(folder_ / "media", folder_ / results, steps);
    all.insert(all.end(), {"--batch-size", "3", "--valid-frac", "0.2", GetParam().checkpoint_every,
                           "4", GetParam().results_every, "10"});
    for (std::size_t i = 0; i < more.size(); ++i) {
      const bool flag = more[i].starts_with("--");
      auto there = flag ? std::find(all.begin(), all.end(), more[i]) : all.end();
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
    for (int i = 0; i < 3000 && metrics(results).find(wanted) == std::string::npos; ++i) {
      std::this_thread::sleep_for(20ms);
    }
  }
  ChildProgram start(const std::vector<std::string>& all, std::size_t max_file = 0) const {
    return {GetParam().path, all, folder_ / "errors", {}, max_file};
  }
  int run(const std::vector<std::string>& all) const { return start(all).wait(); }
  // The program must exit with `code` and print one line of its own, which contains `part`.
  void expect(int code, const std::vector<std::string>& all, const std::string& part) const {
    EXPECT_EQ(run(all), code);
    EXPECT_NE(last_line().find(part), std::string::npos) << last_line() << "\nwanted: " << part;
    EXPECT_EQ(own_lines(), 1) << text_of(folder_ / "errors");
  }
  std::string last_line() const {
    std::istringstream lines(text_of(folder_ / "errors"));
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return last;
  }

  // Number of error lines of the last run ("<program>: ..."), without its log.
  std::int64_t own_lines() const {
    std::istringstream lines(text_of(folder_ / "errors"));
    std::int64_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      count += line.starts_with(GetParam().name + ": ");
    }
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

TEST_P(TrainProgram, ToldToStopLeavesACheckpointAndGoesOn) {
  ChildProgram program = start(arguments("results", 1'000'000));
  wait_for_steps("results", "5");
  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGTERM);
  EXPECT_NE(last_line().find("--resume"), std::string::npos) << last_line();
  EXPECT_EQ(run(arguments("results", 1, {"--resume"})), 0) << last_line();  // nothing left to do
}

class TrainVqgan : public TrainProgram {};
class TrainVideoTokenizer : public TrainProgram {};
class TrainMulan : public TrainProgram {};

TEST_P(TrainMulan, SaysInOneLineWhatIsWrong) {
  expect(2, arguments("a", 4, {"--batch-size", "1"}), "--batch-size must be at least 2: a sound");
  expect(2, arguments("a", 4, {"--batch-size", "40"}), "14 files, 11 of them for training");
  expect(2, arguments("a", 4, {"--data-max-length", "60"}),
         "--data-max-length must be at least 84");
  expect(2, arguments("a", 4, {"--audio-dim", "10"}), "must be a multiple of 4 and at least 8");
  expect(2, arguments("a", 4, {"--text-num-tokens", "100"}), "less than the tokenizer has (257)");
  expect(2, arguments("a", 4, {"--hierarchical-contrastive-loss-layers", "2"}), "1 to 1 layers");
  expect(2, arguments("a", 4, {"--table", (folder_ / "none.csv").string()}), "none.csv: ");
  expect(2, arguments("a", 4, {"--bpe", (folder_ / "none.txt").string()}), "none.txt: ");
  std::vector<std::string> all = arguments("a", 4);
  all[0] = (folder_ / "unpaired").string();
  GetParam().make_media(folder_ / "unpaired", 4);
  for (int i = 0; i < 4; ++i)
    std::filesystem::remove(folder_ / "unpaired" / (std::to_string(i) + ".txt"));
  expect(2, all, "no file with a text of the same name (.txt) beside it; 4 files and 0 texts");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
}

TEST_P(TrainVideoTokenizer, SaysInOneLineWhatIsWrong) {
  expect(2, arguments("a", 4, {"--num-frames", "6"}), "but is 6; take 5 or 7");
  expect(2, arguments("a", 4, {"--layers", "residual,compres_space"}), "layer type compres_space");
  expect(2, arguments("a", 4, {"--layers", "residual;attend_time"}), "cannot read 'residual;att");
  expect(2, arguments("a", 4, {"--layers", "cond_residual"}), "dim_cond must be given");
  expect(2, arguments("a", 4, {"--layers", "cond_residual", "--dim-cond", "3"}),
         "a folder does not");
  expect(2, arguments("a", 4, {"--image-size", "9"}), "image_size must be a multiple of 2");
  expect(2, arguments("a", 4, {"--dataset-type", "sounds"}), "--dataset-type: sounds not in {");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
}

TEST_P(TrainVqgan, SaysInOneLineWhatIsWrong) {
  expect(2, arguments("a", 4, {"--batch-size", "40"}), "14 files, 11 of them for training");
  GetParam().make_media(folder_ / "one", 1);
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
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));  // no failed run has created its folder
}

class TrainNuwa : public TrainProgram {};

TEST_P(TrainNuwa, SaysInOneLineWhatIsWrong) {
  expect(2, arguments("a", 4, {"--batch-size", "40"}), "14 files, 11 of them for training");
  expect(1, arguments("a", 4, {"--vae", (folder_ / "none.pt").string()}), "none.pt: checkpoint: ");
  expect(2, arguments("a", 4, {"--dec-heads", "0"}), "dec_heads must be at least 1, but is 0");
  expect(2, arguments("a", 4, {"--sparse-3dna-kernel-size", "2"}), "must be odd, but is 2");
  expect(2, arguments("a", 4, {"--use-ema", "true"}), "there is no flag --use-ema");
  expect(2, arguments("a", 4, {"--text-num-tokens", "40"}), "but the tokenizer has 257");
  // Texts that are too long are truncated. With --no-cut they are skipped, and no sample is left.
  expect(1, arguments("a", 4, {"--text-max-seq-len", "2", "--no-cut", "true"}), "max_tokens (2)");
  for (int i = 0; i < 14; ++i) {
    std::filesystem::remove(folder_ / "media" / (std::to_string(i) + ".txt"));
  }
  expect(2, arguments("b", 4), "media: ");
}

TEST_P(TrainProgram, LosesNothingOfAnEarlierRun) {
  ASSERT_EQ(run(arguments("done", 2)), 0) << last_line();
  const auto before = contents("done");
  EXPECT_EQ(run(arguments("done", 4)), 2);
  EXPECT_NE(last_line().find("done: holds an earlier run"), std::string::npos) << last_line();
  EXPECT_EQ(contents("done"), before);
  std::vector<std::string> other{"--resume"};
  other.insert(other.end(), GetParam().other_model.begin(), GetParam().other_model.end());
  EXPECT_EQ(run(arguments("done", 4, other)), 1);
  const std::string checkpoint = GetParam().checkpoint(2, 4);
  EXPECT_NE(last_line().find(checkpoint + ": " + GetParam().other_tensor), std::string::npos)
      << last_line();
  EXPECT_NE(last_line().find(GetParam().other_shape), std::string::npos) << last_line();
  EXPECT_EQ(contents("done"), before);  // including the configuration
  for (const auto& [name, content] : before) {
    if (name.starts_with(GetParam().checkpoint_stem)) {
      std::ofstream(folder_ / "done" / name) << "no longer a checkpoint";
    }
  }
  const auto media = contents("media");
  EXPECT_EQ(run(arguments("done", 4, {"--resume"})), 1);
  EXPECT_NE(last_line().find("checkpoints can be read"), std::string::npos);
  // A folder that no run has written is neither resumed nor cleared.
  for (const char* flag : {"--resume", "--clear"}) {
    std::vector<std::string> all = arguments("media", 4);
    all.emplace_back(flag);
    EXPECT_EQ(run(all), 2);
    EXPECT_NE(last_line().find("no run of ours"), std::string::npos) << last_line();
  }
  EXPECT_EQ(contents("media"), media);
}

// A limit on the file size simulates a full disk: a checkpoint exceeds it, the log does not.
TEST_P(TrainProgram, KeepsTheOldCheckpointWhenTheDiskIsFull) {
  ASSERT_EQ(run(arguments("full", 4)), 0) << last_line();
  const std::string file = GetParam().checkpoint(4, 4);
  const std::string old = text_of(folder_ / "full" / file);
  EXPECT_EQ(start(arguments("full", 8, {"--resume"}), old.size() / 2).wait(), 1);
  EXPECT_EQ(own_lines(), 1) << text_of(folder_ / "errors");
  EXPECT_NE(last_line().find(".pt: cannot write "), std::string::npos) << last_line();
  EXPECT_NE(last_line().find("(File too large)"), std::string::npos) << last_line();
  EXPECT_EQ(text_of(folder_ / "full" / file), old);
  for (const auto& [name, content] : contents("full")) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
  EXPECT_EQ(run(arguments("full", 8, {"--resume"})), 0) << last_line();  // without the limit
}

TEST_P(TrainProgram, ItsConfigurationIsACommandLine) {
  ASSERT_EQ(run(arguments("first", 3, {"--betas", "0.5", "0.75"})), 0) << last_line();
  const std::string file = (folder_ / "first" / "config.toml").string();
  std::vector<std::string> all{"--config", file};
  for (const std::string& argument : arguments("second", 3)) {
    if (argument.ends_with("-folder")) {
      all.insert(all.end(), {argument, (folder_ / "second").string()});
    }
  }
  ASSERT_EQ(run(all), 0) << last_line();
  EXPECT_EQ(metrics("first"), metrics("second"));
  auto without_folder = [&](const std::string& results) {
    std::istringstream lines(text_of(folder_ / results / "config.toml"));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("-folder") == std::string::npos) kept.append(line).append("\n");
    }
    return kept;
  };
  EXPECT_EQ(without_folder("first"), without_folder("second"));
  EXPECT_NE(without_folder("first").find("\nbetas = [0.5, 0.75]\n"), std::string::npos)
      << without_folder("first");
  if (GetParam().average.empty() || GetParam().average == "model") return;  // no EMA, no such flags
  EXPECT_NE(without_folder("first").find("\nema-power = 0.6666666666666666\n"), std::string::npos)
      << without_folder("first");
}

std::string name_of(const testing::TestParamInfo<TrainerProgram>& program) {
  return program.param.name;
}
INSTANTIATE_TEST_SUITE_P(Programs, TrainProgram,
                         testing::Values(mulan_program(), vqgan_program(),
                                         video_tokenizer_program(), nuwa_vae_program(),
                                         nuwa_program(), mesh_autoencoder_program(),
                                         mesh_transformer_program()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Programs, TrainMulan, testing::Values(mulan_program()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, TrainNuwa, testing::Values(nuwa_program()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, TrainVqgan, testing::Values(vqgan_program()), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, TrainVideoTokenizer, testing::Values(video_tokenizer_program()),
                         name_of);

}  // namespace
}  // namespace millrace
