// Stops a run by a signal during a step, validation, sampling and a checkpoint. The run must end
// with a complete checkpoint, and the resumed run must equal one that was never stopped.
#include "tests/training/loop/tiny_training.h"

#include <millrace/training/loop/stop_signal.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

namespace millrace {
namespace {

enum class Moment { generator, discriminator, validation, sampling, weights, checkpoint };

// What happened after the signal.
struct Aftermath {
  std::chrono::steady_clock::time_point raised{};
  int calls = 0;  // number of calls of the stage
};

// Raises SIGTERM when it reaches `moment` of `step`.
template <class Trained>
class StoppedStage : public Trained {
 public:
  StoppedStage(Moment moment, std::int64_t step, Aftermath& aftermath, const auto& config,
               const auto& options)
      : Trained(config, options), at_(moment), on_(step), aftermath_(aftermath) {}

  Logs backward(const Batch& batch, const MicroStep& micro) override {
    step_ = micro.step;
    reach(micro.phase == 0 ? Moment::generator : Moment::discriminator);
    return Trained::backward(batch, micro);
  }
  Logs validate(const Batch& batch, bool average) override {
    reach(Moment::validation);
    return Trained::validate(batch, average);
  }
  Samples sample(const Batch& batch, std::int64_t step, bool average) override {
    reach(Moment::sampling);
    return Trained::sample(batch, step, average);
  }
  std::vector<std::pair<std::string, Value>> weights(std::int64_t step, const Value& ema) override {
    reach(Moment::weights);
    return Trained::weights(step, ema);
  }
  std::string config() const override {  // called while a checkpoint is written
    if (at_ == Moment::checkpoint && step_ == on_) raise();
    return Trained::config();
  }

 private:
  void reach(Moment moment) {
    if (raised_) ++aftermath_.calls;
    if (moment == at_ && step_ == on_) raise();
  }
  void raise() const {
    if (std::exchange(raised_, true)) return;
    aftermath_.raised = std::chrono::steady_clock::now();
    std::raise(SIGTERM);
  }

  Moment at_;
  std::int64_t on_, step_ = -1;
  Aftermath& aftermath_;
  mutable bool raised_ = false;
};

constexpr std::int64_t stopped_in = 5;  // a step with samples, weights and a checkpoint

std::unique_ptr<Stage> video_stage() {
  return std::make_unique<VideoTokenizerStage>(tiny_video(), tiny_video_options());
}

class Stop : public testing::TestWithParam<std::pair<Moment, bool>> {
 protected:
  static bool video() { return GetParam().second; }
  static std::unique_ptr<Stage> stopped_stage(Aftermath& aftermath) {
    const Moment moment = GetParam().first;
    if (!video()) {
      return std::make_unique<StoppedStage<VqganStage>>(moment, stopped_in, aftermath, tiny(),
                                                        VqganStageOptions{});
    }
    return std::make_unique<StoppedStage<VideoTokenizerStage>>(moment, stopped_in, aftermath,
                                                               tiny_video(), tiny_video_options());
  }
};

TEST_P(Stop, EndsWithAWholeCheckpointAndLosesNothing) {
  const SchedulerOptions options{
      .save_results_every = 5, .save_model_every = 5, .checkpoint_every = 6};
  TemporaryFolder straight_folder, folder;
  Training straight{.folder = straight_folder.path(), .steps = 9, .options = options};
  if (video()) straight.make_stage = video_stage;
  ASSERT_EQ(straight(), 0);

  Training run{.folder = folder.path(), .steps = 9, .options = options};
  Aftermath aftermath;
  run.make_stage = [&aftermath] { return stopped_stage(aftermath); };
  ASSERT_EQ(run(), 128 + SIGTERM);
  // The run finishes the current step or validation batch and starts nothing else.
  EXPECT_LE(aftermath.calls, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - aftermath.raised, std::chrono::seconds(10));
  const Value left = read_checkpoint(folder / "checkpoint.6.pt");  // the step was finished
  EXPECT_EQ(left["step"].as_int(), stopped_in + 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoint.7.pt"));

  Training again{.folder = folder.path(), .steps = 9, .old = OldRun::resume, .options = options};
  if (video()) again.make_stage = video_stage;
  ASSERT_EQ(again(), 0);
  EXPECT_TRUE(same(again.weights, straight.weights));
  auto text_of = [](const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  // The resumed run repeats the interrupted validation, with the same weights.
  EXPECT_EQ(text_of(folder / "metrics.jsonl"), text_of(straight_folder / "metrics.jsonl"));
  const std::string sample = video() ? "sampled.1.gif" : "5.ema.png";
  EXPECT_FALSE(text_of(folder / sample).empty());
  EXPECT_EQ(text_of(folder / sample), text_of(straight_folder / sample));
}

// The signal comes while the program lists files and reads weights.
TEST(StopBeforeTheFirstStep, LeavesACheckpointOfTheBeginning) {
  TemporaryFolder straight_folder, folder;
  Training straight{.folder = straight_folder.path()};
  ASSERT_EQ(straight(), 0);
  {
    const StopSignal program(std::chrono::seconds(60));
    std::raise(SIGTERM);
    Training run{.folder = folder.path()};
    ASSERT_EQ(run(), 128 + SIGTERM);
    EXPECT_TRUE(run.logs.empty());
  }
  EXPECT_EQ(read_checkpoint(folder / "checkpoint.0.pt")["step"].as_int(), 0);
  Training again{.folder = folder.path(), .old = OldRun::resume};
  ASSERT_EQ(again(), 0);
  EXPECT_TRUE(same(again.weights, straight.weights));
}

TEST(StopBeforeTheFirstStep, EndsAProgramThatNeverGetsThere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopSignal program(std::chrono::milliseconds(100));
        std::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::seconds(60));
      },
      testing::KilledBySignal(SIGTERM), "");
}

INSTANTIATE_TEST_SUITE_P(
    Moments, Stop,
    testing::Values(std::pair(Moment::generator, false), std::pair(Moment::discriminator, false),
                    std::pair(Moment::validation, false), std::pair(Moment::sampling, false),
                    std::pair(Moment::weights, false), std::pair(Moment::checkpoint, false),
                    std::pair(Moment::discriminator, true), std::pair(Moment::validation, true),
                    std::pair(Moment::checkpoint, true)));

}  // namespace
}  // namespace millrace
