// Tests the stage of the video tokenizer: padding frames, the steps and learning rates of its
// optimizers, and checkpoints that Python can load.
#include "tests/training/loop/tiny_training.h"

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

// A model with every layer type that mixes frames.
VideoTokenizerConfig clip_model() {
  VideoTokenizerConfig config = tiny_video();
  config.image_size = 8;
  config.layers = {
      {"compress_space", 6}, {"compress_time"}, {"residual"}, {"attend_time"}, {"gateloop_time"}};
  config.attn_dim_head = 4;
  config.attn_heads = 2;
  return config;
}

std::vector<torch::Tensor> gradients(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> found;
  for (const torch::Tensor& parameter : parameters) {
    found.push_back(parameter.grad().defined() ? parameter.grad().clone()
                                               : torch::zeros_like(parameter));
    parameter.mutable_grad().reset();
  }
  return found;
}

void expect_near(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    // The steep loss of the lookup-free quantizer amplifies rounding errors a hundredfold.
    EXPECT_LT((a[i] - b[i]).norm().item<double>(), 1e-3 * b[i].norm().item<double>() + 1e-5) << i;
  }
}

VideoLossOptions own_frames(const std::vector<std::int64_t>& counts) {
  VideoLossOptions options;
  options.valid_frames = torch::tensor(counts);
  return options;
}

// The loss of a clip of 5 frames does not depend on its padding frames.
TEST(VideoTokenizerStage, FramesThatFillAClipUpDoNotCount) {
  VideoTokenizerConfig config = clip_model();
  config.use_gan = false;
  torch::manual_seed(3);
  VideoTokenizer model(config);
  const torch::Tensor clip = torch::rand({2, 3, 5, 8, 8});
  VideoGeneratorLoss own = model->generator_loss(clip);
  own.backward();
  const auto wanted = gradients(model->generator_parameters());
  const torch::Tensor filled = torch::cat({clip, torch::rand({2, 3, 4, 8, 8})}, 2);
  VideoGeneratorLoss loss = model->generator_loss(filled, own_frames({5, 5}));
  EXPECT_NEAR(loss.total.item<double>(), own.total.item<double>(), 1e-5);
  EXPECT_NEAR(loss.batch_entropy.item<double>(), own.batch_entropy.item<double>(), 1e-5);
  loss.backward();
  expect_near(gradients(model->generator_parameters()), wanted);
  EXPECT_GT((model->generator_loss(filled).total - own.total).abs().item<double>(), 1e-4);
}

TEST(VideoTokenizerStage, DiscriminatorsLookAtOwnFramesOnly) {
  torch::manual_seed(4);
  VideoTokenizer model(clip_model());
  auto judged = [&](double filling) {
    const torch::Tensor clip =
        torch::cat({torch::full({2, 3, 3, 8, 8}, 0.5), torch::full({2, 3, 2, 8, 8}, filling)}, 2);
    torch::manual_seed(9);
    return model->discriminator_loss(clip, own_frames({3, 1})).total;
  };
  EXPECT_NEAR(judged(0).item<double>(), judged(1).item<double>(), 1e-5);
}

TEST(VideoTokenizerStage, RunsLayersAgainWithTheSameNumbers) {
  VideoTokenizerConfig config = clip_model();
  config.attn_dropout = 0.3;
  torch::manual_seed(5);
  VideoTokenizer model(config);
  const torch::Tensor clip = torch::rand({1, 3, 5, 8, 8});
  auto trained = [&](bool recompute) {
    model->set_recompute(recompute);
    torch::manual_seed(6);
    VideoGeneratorLoss loss = model->generator_loss(clip);
    loss.backward();
    auto found = gradients(model->generator_parameters());
    found.push_back(loss.total);
    found.push_back(torch::rand({4}));  // the RNG state must be the same afterwards
    return found;
  };
  const auto kept = trained(false), again = trained(true);
  expect_near(kept, again);
  EXPECT_TRUE(torch::equal(kept.back(), again.back()));
}

struct VideoRun {
  explicit VideoRun(const std::filesystem::path& folder)
      : training{.folder = folder, .steps = 7, .options = {}} {
    training.options.checkpoint_every = 3;
    training.options.checkpoint_numbers = CheckpointNumbers::checkpoints_after_first;
    training.options.save_results_every = 5;
    training.options.schedule.warmup_steps = 4;
    training.options.schedule.steps = 7;
    training.make_stage = [] {
      VideoTokenizerStageOptions options = tiny_video_options();
      options.optimizer.lr = 1e-3;
      return std::make_unique<VideoTokenizerStage>(tiny_video(), options);
    };
  }
  Training training;
};

TEST(VideoTokenizerStage, EveryOptimizerStepsOnceAStepAndEndsAtItsRate) {
  TemporaryFolder folder;
  VideoRun run(folder.path());
  ASSERT_EQ(run.training(), 0);
  const std::vector<double> rates{0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3, 1e-3};
  for (std::int64_t step = 0; step < 7; ++step) {
    EXPECT_NEAR(value_of(run.training.logs[step], "lr"), rates[static_cast<std::size_t>(step)],
                1e-12);
  }
  const Value last = read_checkpoint(folder / "checkpoint.2.pt");
  auto steps_of = [&](const char* name) {
    return as_tensor(last[name]["state"].as_dict().begin()->second["step"]).item<double>();
  };
  EXPECT_EQ(steps_of("optimizer"), 7);
  for (const char* name : {"discr_optimizer", "multiscale_discr_optimizer_0"}) {
    EXPECT_EQ(steps_of(name), 5) << name;  // from step 2 on
    EXPECT_EQ(last[name]["param_groups"].as_list()[0]["lr"].as_double(), 1e-3) << name;
  }
  // The discriminator's warm-up counts its own steps.
  EXPECT_EQ(last["discr_warmup"]["last_step"].as_int(), 5);
  EXPECT_EQ(last["warmup"]["last_step"].as_int(), 7);
  // Steps without the discriminator or the gradient penalty do not log their losses.
  EXPECT_TRUE(value_of(run.training.logs[1], "discr_loss", -1) == -1);
  EXPECT_NE(value_of(run.training.logs[2], "discr_loss", -1), -1);
  EXPECT_NE(value_of(run.training.logs[4], "gradient_penalty", -1), -1);
  EXPECT_EQ(value_of(run.training.logs[5], "gradient_penalty", -1), -1);
}

TEST(VideoTokenizerStage, NamesFilesAsTheTrainerInPython) {
  TemporaryFolder folder;
  VideoRun run(folder.path());
  ASSERT_EQ(run.training(), 0);
  for (const char* name : {"checkpoint.0.pt", "checkpoint.1.pt", "checkpoint.2.pt", "sampled.0.gif",
                           "sampled.1.gif", "sampled.2.gif"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
  const Value first = read_checkpoint(folder / "checkpoint.0.pt");
  EXPECT_EQ(first["step"].as_int(), 1);
  for (const char* key :
       {"model", "ema_model", "optimizer", "discr_optimizer", "warmup", "scheduler", "discr_warmup",
        "discr_scheduler", "multiscale_discr_optimizer_0", "loader", "rng"}) {
    EXPECT_TRUE(first.as_dict().contains(key)) << key;
  }
  EXPECT_FALSE(first["ema_model"].as_dict().contains("online_model.conv_in.conv.weight"));
}

// Does what the Python trainer does with a checkpoint, but without the package. The package's own
// load() is tested by tests/parity/python/python_video_trainer.py, which is run by hand.
TEST(VideoTokenizerStage, PythonGoesOnFromItsCheckpointsAtTheRightRate) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  VideoRun run(folder.path());
  run.training.steps = 2;  // in the middle of the warm-up
  ASSERT_EQ(run.training(), 0);
  const std::string output = run_python(R"(
import json, sys, torch, pytorch_warmup
saved = torch.load(sys.argv[1], weights_only=True)
groups = saved["optimizer"]["param_groups"]
moments = saved["optimizer"]["state"]
def parameter(i, group):  # a parameter that never had a gradient has no moments
    shape = moments[i]["exp_avg"].shape if i in moments else (1,) * (2 if group["weight_decay"] else 1)
    return torch.nn.Parameter(torch.zeros(shape))
parameters = [[parameter(i, group) for i in group["params"]] for group in groups]
optimizer = torch.optim.AdamW([{"params": p} for p in parameters], lr=1.0)
warmup = pytorch_warmup.LinearWarmup(optimizer, warmup_period=1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda step: 1.)
optimizer.load_state_dict(saved["optimizer"])
warmup.load_state_dict(saved["warmup"])
scheduler.load_state_dict(saved["scheduler"])
rates = []
for _ in range(4):
    rates.append([group["lr"] for group in optimizer.param_groups])
    for p in parameters[0] + parameters[1]:
        p.grad = torch.ones_like(p)
    optimizer.step()
    with warmup.dampening():
        scheduler.step()
print(json.dumps({"rates": rates, "dims": [sorted({p.ndim > 1 for p in ps}) for ps in parameters],
                  "decay": [g["weight_decay"] for g in groups], "step": saved["step"]}))
)",
                                        (folder / "checkpoint.1.pt").string());
  const auto result = nlohmann::json::parse(output, nullptr, false);
  ASSERT_FALSE(result.is_discarded()) << output;
  const std::vector<double> rates{0.75e-3, 1e-3, 1e-3, 1e-3};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (const double rate : result["rates"][i]) EXPECT_NEAR(rate, rates[i], 1e-12) << i;
  }
  EXPECT_EQ(result["dims"], nlohmann::json::parse("[[true], [false]]"));
  EXPECT_EQ(result["decay"], nlohmann::json::parse("[0.01, 0]"));
  EXPECT_EQ(result["step"], 2);
}

}  // namespace
}  // namespace millrace
