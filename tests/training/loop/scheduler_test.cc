// Tests the scheduler with a tiny VQGAN on generated pictures: results, resume, signals, errors.
#include "tests/training/loop/tiny_training.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>

#include <csignal>
#include <limits>

namespace millrace {
namespace {

TEST(Scheduler, LeavesTheFilesOfTheTrainerInPython) {
  TemporaryFolder folder;
  Training run{.folder = folder.path(),
               .steps = 5,
               .options = {.save_results_every = 3, .save_model_every = 3}};
  EXPECT_EQ(run(), 0);
  for (const char* name :
       {"0.png", "0.ema.png", "3.png", "4.png", "vae.0.pt", "vae.0.ema.pt", "vae.3.pt",
        "vae.4.ema.pt", "checkpoint.4.pt", "checkpoint.5.pt", "metrics.jsonl", "config.toml"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "vae.1.pt"));
  const Value last = read_checkpoint(folder / "checkpoint.5.pt");
  for (const char* key :
       {"model", "optim", "discr_optim", "ema", "step", "loader", "rng", "config", "version"}) {
    EXPECT_TRUE(last.as_dict().contains(key)) << key;
  }
  EXPECT_EQ(last["step"].as_int(), 5);
  EXPECT_GT(value_of(run.logs[3], "valid_loss"), 0);
  EXPECT_GT(value_of(run.logs[3], "valid_ema_loss"), 0);
  EXPECT_EQ(run.logs.size(), 5U);
}

TEST(Scheduler, ResumesToTheBit) {
  TemporaryFolder straight_folder, broken_folder;
  Training straight{
      .folder = straight_folder.path(), .steps = 9, .options = {.grad_accum_every = 2}};
  EXPECT_EQ(straight(), 0);
  // Interrupted twice by an exception, after steps that are in no checkpoint.
  struct Killed {};
  for (std::int64_t end : {3, 7}) {
    Training broken{.folder = broken_folder.path(),
                    .steps = 9,
                    .old = OldRun::resume,
                    .hook =
                        [end](std::int64_t step, const Logs&) {
                          if (step == end) throw Killed{};
                        },
                    .options = {.grad_accum_every = 2}};
    EXPECT_THROW(broken(), Killed);
  }
  Training last{.folder = broken_folder.path(),
                .steps = 9,
                .old = OldRun::resume,
                .options = {.grad_accum_every = 2}};
  EXPECT_EQ(last(), 0);
  EXPECT_TRUE(same(straight.weights, last.weights));
  auto lines = [](const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  EXPECT_EQ(lines(straight_folder / "metrics.jsonl"), lines(broken_folder / "metrics.jsonl"));
}

TEST(Scheduler, EndsWithACheckpointWhenToldToStop) {
  for (int signal : {SIGTERM, SIGINT}) {
    TemporaryFolder folder;
    Training run{.folder = folder.path(),
                 .steps = 1000,
                 .hook =
                     [signal](std::int64_t step, const Logs&) {
                       if (step == 3) std::raise(signal);
                     },
                 .options = {.checkpoint_every = 500}};
    EXPECT_EQ(run(), 128 + signal);
    EXPECT_EQ(read_checkpoint(folder / "checkpoint.4.pt")["step"].as_int(), 4);
  }
}

TEST(Scheduler, FallsBackToTheLastWholeCheckpoint) {
  TemporaryFolder folder;
  EXPECT_EQ((Training{.folder = folder.path(), .steps = 5})(), 0);
  std::filesystem::resize_file(folder / "checkpoint.5.pt", 5000);
  std::string warning;
  set_log_sink([&](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning) warning += line;
  });
  Training again{.folder = folder.path(), .steps = 6, .old = OldRun::resume};
  EXPECT_EQ(again(), 0);
  set_log_sink({});
  EXPECT_NE(warning.find("checkpoint.5.pt"), std::string::npos);
  EXPECT_EQ(again.logs.begin()->first, 4);  // step 4 was repeated
}

TEST(Scheduler, RefusesAFolderWithAnEarlierRun) {
  TemporaryFolder folder;
  EXPECT_EQ((Training{.folder = folder / "r", .steps = 1})(), 0);
  EXPECT_THROW((Training{.folder = folder / "r", .steps = 1})(), Error);
  EXPECT_EQ((Training{.folder = folder / "r", .steps = 1, .old = OldRun::clear})(), 0);
  // A folder that is not a run's is never cleared.
  std::filesystem::create_directory(folder / "photos");
  std::ofstream(folder / "photos" / "a.txt") << "mine";
  EXPECT_THROW((Training{.folder = folder / "photos", .steps = 1, .old = OldRun::clear})(), Error);
  EXPECT_TRUE(std::filesystem::exists(folder / "photos" / "a.txt"));
}

TEST(Scheduler, SkipsStepsWithoutAFiniteLossAndThenGivesUp) {
  TemporaryFolder folder;
  // With an infinite learning rate all losses are NaN after the generator's first step.
  Training run{.folder = folder.path(),
               .steps = 50,
               .options = {.max_bad_steps = 4},
               .stage_options = {.optimizer = {.lr = std::numeric_limits<double>::infinity()}}};
  set_log_level(LogLevel::error);
  EXPECT_THROW(run(), Error);
  set_log_level(LogLevel::info);
  EXPECT_EQ(run.logs.size(), 3U);  // the fourth bad step throws before it is logged
}

TEST(Scheduler, NamesTheFirstTensorOfAnotherModel) {
  TemporaryFolder folder;
  EXPECT_EQ((Training{.folder = folder.path(), .steps = 1})(), 0);
  torch::manual_seed(5);
  VqganConfig other = tiny();
  other.codebook_size = 64;
  VqganStage stage(other, {});
  Loader train(GeneratedImages({.count = 8, .shape = {16, 16, 3}}), {.batch_size = 4});
  const RunFolder run_folder(folder.path(), OldRun::resume);
  Scheduler scheduler(stage, train, nullptr, run_folder, {.num_train_steps = 2});
  try {
    scheduler.resume();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'quantizer.mask' is [4], the model's is [6]"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace millrace
