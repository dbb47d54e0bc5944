// fp16 training through the whole loop, with a stage that is small enough for a CPU: the loss scale
// drops until gradients stop overflowing, and is restored from a checkpoint.
#include "tests/reference.h"

#include <millrace/datasets/compose/generated.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/loop/scheduler.h>

namespace millrace {
namespace {

// Learns to predict the mean of a picture.
class MeanStage : public Stage {
 public:
  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *average_; }
  std::vector<Phase> phases() override {
    return {{.loss = "loss", .optimizers = {{.state = "optim", .optimizer = &optimizer_}}}};
  }
  Logs backward(const Batch& batch, const MicroStep& micro) override {
    const torch::Tensor pictures = to_tensor(batch["image"]).flatten(1);
    const torch::Tensor predicted = model_->forward(pictures);
    half_ = half_ && predicted.scalar_type() == torch::kHalf;
    const torch::Tensor loss = (predicted - pictures.mean(1, true)).square().mean();
    (loss * micro.scale).backward();
    return {{"loss", loss.item<double>()}};
  }
  Logs validate(const Batch&, bool) override { return {}; }
  std::string config() const override { return "{}"; }
  bool always_half() const { return half_; }

 private:
  torch::nn::Linear model_{48, 1}, average_{48, 1};
  Optimizer optimizer_{model_->parameters(), {.lr = 1e-2}};
  bool half_ = true;
};

std::vector<Logs> train(const std::filesystem::path& folder, std::int64_t steps) {
  torch::manual_seed(1);
  MeanStage stage;
  Loader loader(GeneratedImages({.count = 32, .shape = {4, 4, 3}}),
                {.batch_size = 8, .threads = 1, .to_float = {{"image", ToFloat::unit()}}});
  const RunFolder run_folder(folder, OldRun::resume);
  run_folder.write_config("config.toml", "");
  Scheduler scheduler(stage, loader, nullptr, run_folder,
                      {.num_train_steps = steps,
                       .save_model_every = 0,
                       .use_ema = false,
                       .precision = Precision::fp16,
                       .scaler = {.init_scale = 1 << 24, .growth_interval = 10}});
  scheduler.resume();
  std::vector<Logs> logs;
  scheduler.add_tracker(std::make_unique<CallbackTracker>(
      [&](std::int64_t, const Logs& at_step) { logs.push_back(at_step); }));
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_EQ(scheduler.bad_steps(), 0);
  EXPECT_TRUE(stage.always_half());
  EXPECT_EQ(stage.model().parameters()[0].scalar_type(), torch::kFloat32);
  return logs;
}

TEST(LossScaler, FindsItsScaleInARunAndKeepsItInTheCheckpoint) {
  TemporaryFolder folder;
  const std::vector<Logs> first = train(folder / "run", 40);
  EXPECT_EQ(value_of(first[0], "optim_loss_scale"), 1 << 23);  // too large: skipped and halved
  const double found = value_of(first.back(), "optim_loss_scale");
  EXPECT_LT(found, 1 << 23);
  EXPECT_LT(value_of(first.back(), "loss"), 0.5 * value_of(first.front(), "loss"));
  const Value saved = read_checkpoint(folder / "run" / "checkpoint.40.pt");
  EXPECT_EQ(saved["scaler"]["scale"].as_double(), found);

  const std::vector<Logs> second = train(folder / "run", 60),
                          straight = train(folder / "other", 60);
  ASSERT_EQ(second.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(value_of(second[i], "optim_loss_scale"),
              value_of(straight[40 + i], "optim_loss_scale"));
    EXPECT_EQ(value_of(second[i], "loss"), value_of(straight[40 + i], "loss"));
  }
}

}  // namespace
}  // namespace millrace
