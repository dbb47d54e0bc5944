// train_vqgan as several ranks: the same numbers as one process, and an end that everybody hears
// of.
#include "tests/training/child_program.h"
#include "tests/training/tiny_command.h"

#include <millrace/training/checkpoint.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

class TrainRanks : public testing::Test {
 protected:
  // 17 pictures train, which no group of batches here divides.
  void SetUp() override { make_pictures(folder_ / "pictures", 22); }

  std::vector<std::string> arguments(const std::string& results, int steps, int accumulate,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags{"--grad-accum-every",   std::to_string(accumulate),
                                   "--batch-size",         "2",
                                   "--valid-frac",         "0.22",
                                   "--save-results-every", "4",
                                   "--max-grad-norm",      "0.5"};
    flags.insert(flags.end(), more.begin(), more.end());
    return tiny_command(folder_ / "pictures", folder_ / results, steps, flags);
  }
  // Starts all ranks; what rank r says goes to `errors.r`.
  std::vector<ChildProgram> start(int world, const std::vector<std::string>& all) const {
    const int port = free_port();
    std::vector<ChildProgram> ranks;
    for (int rank = 0; rank < world; ++rank) {
      ranks.emplace_back(MILLRACE_TRAIN_VQGAN, all, folder_ / c10::str("errors.", rank),
                         rank_environment(rank, world, port));
    }
    return ranks;
  }
  void run(int world, const std::vector<std::string>& all) const {
    if (world == 1) {
      ChildProgram alone(MILLRACE_TRAIN_VQGAN, all, folder_ / "errors");
      EXPECT_EQ(alone.wait(), 0) << alone.errors();
      return;
    }
    for (ChildProgram& rank : start(world, all)) EXPECT_EQ(rank.wait(), 0) << rank.errors();
  }
  // The way that users go: torchrun's agent has the store.
  static void run_with_torchrun(int world, const std::vector<std::string>& all) {
    std::string command = c10::str(
        MILLRACE_PYTHON, " -m torch.distributed.run --no-python --master-addr 127.0.0.1",
        " --master-port ", free_port(), " --nproc-per-node ", world, " ", MILLRACE_TRAIN_VQGAN);
    for (const std::string& argument : all) command.append(" ").append(argument);
    run_command(command);
  }
  // All that a run logged, by step and name.
  std::map<std::string, double> logged(const std::string& results) const {
    std::map<std::string, double> values;
    std::ifstream lines(folder_ / results / "metrics.jsonl");
    for (std::string line; std::getline(lines, line);) {
      const auto entry = nlohmann::json::parse(line);
      for (const auto& [name, value] : entry.items()) {
        values[c10::str(entry["step"].get<int>(), " ", name)] = value.get<double>();
      }
    }
    return values;
  }
  void expect_same(const std::string& one, const std::string& other, int last_step) const {
    const auto a = logged(one), b = logged(other);
    EXPECT_TRUE(a.contains(c10::str(last_step, " loss")));
    EXPECT_TRUE(a.contains(c10::str(last_step, " valid_ema_loss")));
    for (const auto& [name, value] : a) {
      const auto there = b.find(name);
      ASSERT_NE(there, b.end()) << name;
      EXPECT_NEAR(value, there->second, 1e-5 * std::max(1.0, std::abs(value)))
          << name << " of " << other;
    }
    const std::string file = c10::str("vae.", last_step, ".ema.pt");  // both models are in it
    const Value u = read_checkpoint(folder_ / one / file);
    const Value v = read_checkpoint(folder_ / other / file);
    for (const auto& [key, tensor] : u.as_dict()) {
      EXPECT_TRUE(torch::allclose(tensor.as_tensor().to(torch::kFloat64),
                                  v[key.as_string()].as_tensor().to(torch::kFloat64), 1e-5, 1e-5))
          << key.as_string();
    }
  }
  void wait_for_step(const std::string& results, int step) const {
    const std::string wanted = c10::str("{\"step\":", step, ",");
    for (int i = 0; i < 3000; ++i) {
      if (text_of(folder_ / results / "metrics.jsonl").find(wanted) != std::string::npos) return;
      std::this_thread::sleep_for(20ms);
    }
    FAIL() << "no step " << step << ": " << text_of(folder_ / "errors.0");
  }

  TemporaryFolder folder_;
};

// Epochs end in the middle of everything. One batch a rank: the sums have the same order, too.
TEST_F(TrainRanks, EqualOneProcessThatAccumulates) {
  for (int world : {2, 3}) {
    const std::string alone = c10::str("alone", world), ranks = c10::str("ranks", world);
    run(1, arguments(alone, 7, world));
    if (world == 2 && MILLRACE_PYTHON_TORCH) {
      run_with_torchrun(world, arguments(ranks, 7, 1));
    } else {
      run(world, arguments(ranks, 7, 1));
    }
    expect_same(alone, ranks, 6);
    // Only rank 0 writes.
    for (const char* name : {"0.png", "0.ema.png", "checkpoint.7.pt", "config.toml"}) {
      EXPECT_TRUE(std::filesystem::exists(folder_ / ranks / name)) << name;
    }
  }
}

// Six batches a step, however they are spread.
TEST_F(TrainRanks, GoOnWithAnotherNumberOfRanks) {
  // Else some biases have no gradient but rounding errors, which Adam takes for one.
  const std::vector<std::string> wide{"--dim", "32", "--adversarial-weight", "1"};
  std::vector<std::string> resumed = wide;
  resumed.emplace_back("--resume");
  run(2, arguments("ranks", 3, 3, wide));
  run(3, arguments("ranks", 6, 2, resumed));
  run(1, arguments("ranks", 8, 6, resumed));
  run(1, arguments("alone", 8, 6, wide));
  expect_same("alone", "ranks", 7);
}

TEST_F(TrainRanks, EndWhenOneIsKilledAndSayWhichAndWhy) {
  std::vector<ChildProgram> ranks = start(3, arguments("results", 1'000'000, 1));
  wait_for_step("results", 5);
  const auto begin = std::chrono::steady_clock::now();
  ranks[1].send(SIGKILL);
  for (std::size_t rank : {0, 2}) {
    EXPECT_EQ(ranks[rank].wait(), 1);
    EXPECT_NE(ranks[rank].errors().find("rank 1 is gone"), std::string::npos)
        << ranks[rank].errors();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(TrainRanks, EndWhenTheHostOfTheStoreIsKilled) {
  std::vector<ChildProgram> ranks = start(2, arguments("results", 1'000'000, 1));
  wait_for_step("results", 2);
  ranks[0].send(SIGKILL);
  EXPECT_EQ(ranks[1].wait(), 1);
  EXPECT_NE(ranks[1].errors().find("rank 0 or torchrun has ended"), std::string::npos)
      << ranks[1].errors();
}

TEST_F(TrainRanks, StopTogetherWhenOneIsToldTo) {
  std::vector<ChildProgram> ranks = start(2, arguments("results", 1'000'000, 1));
  wait_for_step("results", 2);
  ranks[1].send(SIGTERM);
  for (ChildProgram& rank : ranks) EXPECT_EQ(rank.wait(), 128 + SIGTERM) << rank.errors();
  EXPECT_NE(ranks[0].errors().find("--resume"), std::string::npos) << ranks[0].errors();
  // Both stopped after the same step, which the checkpoint holds.
  ChildProgram again(MILLRACE_TRAIN_VQGAN, arguments("results", 1, 1, {"--resume"}),
                     folder_ / "errors");
  EXPECT_EQ(again.wait(), 0) << again.errors();
}

TEST_F(TrainRanks, HearWhatIsWrongOnRankZero) {
  run(1, arguments("done", 1, 1));
  std::vector<ChildProgram> ranks = start(2, arguments("done", 2, 1));
  EXPECT_EQ(ranks[0].wait(), 2);
  EXPECT_EQ(ranks[1].wait(), 1);
  for (ChildProgram& rank : ranks) {
    EXPECT_NE(rank.errors().find("holds an earlier run"), std::string::npos) << rank.errors();
  }
}

}  // namespace
}  // namespace millrace
