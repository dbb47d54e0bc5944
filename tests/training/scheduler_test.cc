// The scheduler with the smallest VQGAN over generated pictures: results, resume, signals, trouble.
#include "tests/reference.h"

#include <millrace/datasets/generated.h>
#include <millrace/pipeline/error.h>
#include <millrace/pipeline/log.h>
#include <millrace/pipeline/subset.h>
#include <millrace/training/checkpoint.h>
#include <millrace/training/models/module_tensors.h>
#include <millrace/training/scheduler.h>
#include <millrace/training/stages/vqgan_stage.h>

#include <csignal>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include <torch/torch.h>

namespace millrace {
namespace {

VqganConfig tiny() {
  return {.dim = 16, .layers = 1, .codebook_size = 16, .discr_layers = 1, .num_resnet_blocks = {0}};
}

using Hook = std::function<void(std::int64_t step, const Logs& logs)>;

// A run from whatever the folder holds to `steps`. Fills `logs` with what was logged at each step.
struct Training {
  std::filesystem::path folder;
  std::int64_t steps = 6;
  OldRun old = OldRun::refuse;
  Hook hook = [](std::int64_t, const Logs&) {};
  SchedulerOptions options{};
  VqganStageOptions stage_options{};

  std::map<std::int64_t, Logs> logs{};
  NamedTensors weights{};
  std::int64_t skipped = 0;

  int operator()() {
    torch::set_num_threads(1);
    torch::manual_seed(5);
    VqganStage stage(tiny(), stage_options);
    auto [train_set, valid_set] =
        random_split(GeneratedImages({.count = 23, .shape = {16, 16, 3}}), {.valid_fraction = 0.2});
    const std::map<std::string, ToFloat> to_float{{"image", ToFloat::unit()}};
    auto pool = std::make_shared<Pool>(1);
    Loader train(train_set, {.batch_size = 4, .shuffle = true, .pool = pool, .to_float = to_float});
    Loader valid(valid_set, {.batch_size = 4, .pool = pool, .to_float = to_float});
    const RunFolder run_folder(folder, old);
    run_folder.write_config("config.toml", "");
    options.num_train_steps = steps;
    options.ema = {.beta = 0.995, .update_after_step = 0, .update_every = 1};
    if (options.checkpoint_every == 0) options.checkpoint_every = 2;
    Scheduler scheduler(stage, train, &valid, run_folder, options);
    const std::int64_t first = scheduler.resume();
    scheduler.add_tracker(std::make_unique<JsonLinesTracker>(folder / "metrics.jsonl", first));
    scheduler.add_tracker(
        std::make_unique<CallbackTracker>([this](std::int64_t step, const Logs& at_step) {
          for (const auto& entry : at_step) logs[step].push_back(entry);
          hook(step, at_step);
        }));
    const int code = scheduler.run();
    weights = state_tensors(stage.model());
    skipped = scheduler.bad_steps();
    return code;
  }
};

bool same(const NamedTensors& a, const NamedTensors& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i)
    equal = torch::equal(a[i].second, b[i].second);
  return equal;
}

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
  // Thrown out in the middle of nowhere, twice, after steps that no checkpoint holds.
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
  EXPECT_EQ(again.logs.begin()->first, 4);  // step 4 was done again
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
  // A rate that blows the weights up: after the generator's first step no loss is a number.
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
