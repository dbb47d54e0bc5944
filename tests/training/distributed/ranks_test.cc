// Runs the trainers with several ranks: the results equal those of one process, and the failure of
// one rank ends all.
#include "tests/training/programs/trainer_programs.h"

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using namespace std::chrono_literals;

class TrainRanks : public testing::TestWithParam<TrainerProgram> {
 protected:
  // By default 17 files are for training: not divisible by the batches per step of any test here.
  void SetUp() override { GetParam().make_media(folder_ / "media", GetParam().files); }

  std::vector<std::string> arguments(const std::string& results, int steps, int accumulate,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all =
        GetParam().arguments(folder_ / "media", folder_ / results, steps);
    auto add = [&](const std::string& name, const std::string& value) {
      all.push_back(name);
      all.push_back(value);
    };
    add("--grad-accum-every", std::to_string(accumulate));
    add("--batch-size", "2");
    add("--valid-frac", "0.22");
    add(GetParam().results_every, "4");
    add(GetParam().checkpoint_every, "4");
    add("--max-grad-norm", "0.5");
    for (std::size_t i = 0; i < more.size(); ++i) {
      auto there = std::find(all.begin(), all.end(), more[i]);
      if (there == all.end() || !more[i].starts_with("--")) {
        all.push_back(more[i]);
      } else {
        *++there = more[++i];  // another value for the same flag
      }
    }
    return all;
  }
  // Starts all ranks; rank r writes its stderr to `errors.r`.
  std::vector<ChildProgram> start(int world, const std::vector<std::string>& all) const {
    const int port = free_port();
    std::vector<ChildProgram> ranks;
    for (int rank = 0; rank < world; ++rank) {
      ranks.emplace_back(GetParam().path, all, folder_ / c10::str("errors.", rank),
                         rank_environment(rank, world, port));
    }
    return ranks;
  }
  void run(int world, const std::vector<std::string>& all) const {
    if (world == 1) {
      ChildProgram alone(GetParam().path, all, folder_ / "errors");
      EXPECT_EQ(alone.wait(), 0) << alone.errors();
      return;
    }
    for (ChildProgram& rank : start(world, all)) EXPECT_EQ(rank.wait(), 0) << rank.errors();
  }
  // As users start it: torchrun's agent runs the store's server.
  void run_with_torchrun(int world, const std::vector<std::string>& all) const {
    std::string command =
        c10::str(MILLRACE_PYTHON, " -m torch.distributed.run --no-python --master-addr 127.0.0.1",
                 " --master-port ", free_port(), " --nproc-per-node ", world, " ", GetParam().path);
    for (const std::string& argument : all) command.append(" ").append(argument);
    run_command(command);
  }
  // All logged values of a run, with the key "<step> <name>".
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
    EXPECT_TRUE(a.contains(c10::str(last_step, " ", GetParam().loss)));
    EXPECT_TRUE(a.contains(c10::str(last_step, " ", GetParam().valid_loss)));
    for (const auto& [name, value] : a) {
      // Ranks that share a batch pad their parts of it separately.
      if (GetParam().one_batch && name.ends_with(" padding")) continue;
      const auto there = b.find(name);
      ASSERT_NE(there, b.end()) << name;
      EXPECT_NEAR(value, there->second, 1e-5 * std::max(1.0, std::abs(value)))
          << name << " of " << other;
    }
    const std::string file = GetParam().checkpoint(last_step + 1, 4);
    const Value u = read_checkpoint(folder_ / one / file);
    const Value v = read_checkpoint(folder_ / other / file);
    for (const std::string& part : {std::string("model"), GetParam().average}) {
      if (part.empty()) continue;  // the trainer has no EMA
      for (const auto& [key, tensor] : u[part].as_dict()) {
        const torch::Tensor there = as_tensor(v[part][key.as_string()]).to(torch::kFloat64);
        EXPECT_TRUE(torch::allclose(as_tensor(tensor).to(torch::kFloat64), there, 1e-5, 1e-5))
            << key.as_string();
      }
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

// Tests of the scheduler, which is the same for all trainers: one trainer is enough.
class RankFaults : public TrainRanks {};

// Epochs end in the middle of a step. Each rank has one batch per step, so that sums are taken in
// the same order as in one process.
TEST_P(TrainRanks, EqualOneProcessThatHasAllBatches) {
  for (int world : {2, 3}) {
    const std::string alone = c10::str("alone", world), ranks = c10::str("ranks", world);
    if (GetParam().one_batch) {
      run(1, arguments(alone, 7, 1, {"--batch-size", std::to_string(2 * world)}));
    } else {
      run(1, arguments(alone, 7, world));
    }
    if (world == 2 && MILLRACE_PYTHON_TORCH) {
      run_with_torchrun(world, arguments(ranks, 7, 1));
    } else {
      run(world, arguments(ranks, 7, 1));
    }
    expect_same(alone, ranks, 6);
    // Only rank 0 writes.
    std::vector<std::string> written = GetParam().samples;
    written.insert(written.end(), {GetParam().checkpoint(7, 4), "config.toml"});
    for (const std::string& name : written) {
      EXPECT_TRUE(std::filesystem::exists(folder_ / ranks / name)) << name;
    }
  }
}

// Every run has six batches per step in total (or one batch of six), whatever the number of ranks.
TEST_P(TrainRanks, GoOnWithAnotherNumberOfRanks) {
  auto go_on = [&](int world, const std::string& results, int steps, bool resume) {
    std::vector<std::string> more = GetParam().steady;
    if (GetParam().one_batch) {
      more.insert(more.end(), {"--batch-size", std::to_string(6 / world)});
    }
    if (resume) more.emplace_back("--resume");
    run(world, arguments(results, steps, GetParam().one_batch ? 1 : 6 / world, more));
  };
  go_on(2, "ranks", 3, false);
  go_on(3, "ranks", 6, true);
  go_on(1, "ranks", 8, true);
  go_on(1, "alone", 8, false);
  expect_same("alone", "ranks", 7);
}

TEST_P(RankFaults, EveryRankKeepsItsOwnLedger) {
  run(2, arguments("ranks", 2, 1));
  std::vector<std::string> ledgers;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "ranks")) {
    std::string name = entry.path().filename().string();
    if (name.starts_with("errors")) ledgers.push_back(name);
  }
  std::ranges::sort(ledgers);
  EXPECT_EQ(ledgers, (std::vector<std::string>{"errors.jsonl", "errors.rank1.jsonl"}));
}

TEST_P(RankFaults, EndWhenOneIsKilledAndSayWhichAndWhy) {
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

TEST_P(RankFaults, EndWhenTheHostOfTheStoreIsKilled) {
  std::vector<ChildProgram> ranks = start(2, arguments("results", 1'000'000, 1));
  wait_for_step("results", 2);
  ranks[0].send(SIGKILL);
  EXPECT_EQ(ranks[1].wait(), 1);
  EXPECT_NE(ranks[1].errors().find("rank 0 or torchrun has ended"), std::string::npos)
      << ranks[1].errors();
}

TEST_P(TrainRanks, StopTogetherWhenOneIsToldTo) {
  std::vector<ChildProgram> ranks = start(2, arguments("results", 1'000'000, 1));
  wait_for_step("results", 2);
  ranks[1].send(SIGTERM);
  for (ChildProgram& rank : ranks) EXPECT_EQ(rank.wait(), 128 + SIGTERM) << rank.errors();
  EXPECT_NE(ranks[0].errors().find("--resume"), std::string::npos) << ranks[0].errors();
  // Both stopped after the same step, which the checkpoint holds.
  ChildProgram again(GetParam().path, arguments("results", 1, 1, {"--resume"}), folder_ / "errors");
  EXPECT_EQ(again.wait(), 0) << again.errors();
}

TEST_P(RankFaults, HearWhatIsWrongOnRankZero) {
  run(1, arguments("done", 1, 1));
  std::vector<ChildProgram> ranks = start(2, arguments("done", 2, 1));
  EXPECT_EQ(ranks[0].wait(), 2);
  EXPECT_EQ(ranks[1].wait(), 1);
  for (ChildProgram& rank : ranks) {
    EXPECT_NE(rank.errors().find("holds an earlier run"), std::string::npos) << rank.errors();
  }
}

std::string name_of(const testing::TestParamInfo<TrainerProgram>& program) {
  return program.param.name;
}
// The codebook's EMA is updated with every batch. So several ranks equal one process with a larger
// batch, not one process that accumulates gradients. The last batch of an epoch is padded with
// repeated pictures so that the ranks' parts have equal sizes; with 12 files for training there is
// no such padding. The adaptive weight of the discriminator differs between the ranks' parts, so
// the discriminator is off.
TrainerProgram plain_nuwa_vae_program() {
  TrainerProgram program = nuwa_vae_program();
  for (const char* flag : {"--use-vgg-and-gan", "false", "--vq-threshold-ema-dead-code", "1.5"}) {
    program.model.emplace_back(flag);
  }
  program.files = 16;
  program.one_batch = true;
  return program;
}
INSTANTIATE_TEST_SUITE_P(Programs, TrainRanks,
                         testing::Values(mulan_program(), vqgan_program(),
                                         video_tokenizer_program(), nuwa_program(),
                                         plain_nuwa_vae_program(), mesh_autoencoder_program(),
                                         mesh_transformer_program()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Programs, RankFaults, testing::Values(vqgan_program()), name_of);

}  // namespace
}  // namespace millrace
