// Compares schedules, warm-up and EMA with torch, pytorch-warmup and ema-pytorch over 200 steps.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/optim/ema.h>
#include <millrace/training/optim/lr_schedule.h>

#include <string>

namespace millrace {
namespace {

TEST(Schedule, EqualsThePythonPackagesOver200Steps) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  std::istringstream rates(run_python(R"(
import warnings; warnings.filterwarnings('ignore')
import torch
from torch.optim.lr_scheduler import LambdaLR, LinearLR, CosineAnnealingLR, StepLR
from pytorch_warmup import LinearWarmup
makers = [lambda o: LambdaLR(o, lambda t: 1.), lambda o: LinearLR(o, 0.8, 0.1, 150), lambda o: CosineAnnealingLR(o, 200, 0.05),
          lambda o: StepLR(o, 40, 0.5)]
for make in makers:
    for warmup in (0, 30):
        p = torch.nn.Parameter(torch.zeros(1))
        opt = torch.optim.SGD([p], lr=1.)
        schedule = make(opt)
        damp = LinearWarmup(opt, warmup) if warmup else None
        for t in range(200):
            print(repr(opt.param_groups[0]['lr']))
            opt.step()
            if damp:
                with damp.dampening(): schedule.step()
            else: schedule.step()
)"));
  const std::vector<ScheduleOptions> schedules = {
      {},
      {.kind = ScheduleKind::linear, .steps = 150, .start_factor = 0.8, .end_factor = 0.1},
      {.kind = ScheduleKind::cosine, .steps = 200, .end_factor = 0.05},
      {.kind = ScheduleKind::step, .step_size = 40, .gamma = 0.5}};
  for (ScheduleOptions options : schedules) {
    for (std::int64_t warmup : {0, 30}) {
      options.warmup_steps = warmup;
      const Schedule schedule(options);
      for (std::int64_t t = 0; t < 200; ++t) {
        double want = -1;
        rates >> want;
        EXPECT_NEAR(schedule.factor(t), want, 1e-9)
            << "kind " << static_cast<int>(options.kind) << " warm-up " << warmup << " step " << t;
      }
    }
  }
}

TEST(Schedule, WarmUpEndsAtTheTarget) {
  const Schedule schedule({.warmup_steps = 10});
  EXPECT_DOUBLE_EQ(schedule.factor(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.factor(9), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(1000), 1);
  const Schedule cosine({.kind = ScheduleKind::cosine, .steps = 100, .end_factor = 0.25});
  EXPECT_DOUBLE_EQ(cosine.factor(100), 0.25);
  EXPECT_DOUBLE_EQ(cosine.factor(150), 0.25);  // constant after the end
  EXPECT_THROW(Schedule({.kind = ScheduleKind::cosine}), Error);
  EXPECT_THROW(schedule_kind("triangle"), Error);
}

// The learning rate factors of meshgpt-pytorch's MeshAutoencoderTrainer with warmup_steps 10.
TEST(Schedule, CanStayAtTheRateOfTheFirstWarmUpStepAsInPython) {
  const Schedule schedule({.warmup_steps = 10, .stays_at_first_warmup_rate = true});
  const std::vector<double> wanted{0.1, 0.02, 0.03, 0.04};
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    EXPECT_DOUBLE_EQ(schedule.factor(static_cast<std::int64_t>(t)), wanted[t]);
  }
  EXPECT_DOUBLE_EQ(schedule.factor(100), 0.1);
}

TEST(Ema, EqualsThePythonPackageOver200Steps) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  run_python(R"(
import sys, torch
from ema_pytorch import EMA
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
start = {k: v.clone() for k, v in net.state_dict().items()}
noise = [{k: torch.randn(v.shape) if v.is_floating_point() else torch.tensor(t) for k, v in start.items()} for t in range(200)]
configs = [dict(), dict(beta=0.995, update_after_step=0, update_every=1),
           dict(beta=0.9, update_after_step=5, update_every=2, inv_gamma=2., power=0.75, min_value=0.1)]
runs = []
for config in configs:
    net.load_state_dict(start)
    ema = EMA(net, **config)
    track, middle = [], None
    for t in range(200):
        net.load_state_dict(noise[t])
        ema.update()
        track.append({k: v.clone() for k, v in ema.ema_model.state_dict().items()})
        if t == 120: middle = {k: v.clone() for k, v in ema.state_dict().items()}
    runs.append({'track': track, 'middle': middle, 'end': ema.state_dict()})
torch.save({'start': start, 'noise': noise, 'runs': runs}, sys.argv[1])
)",
             (folder / "r.pt").string());
  const Value want = read_checkpoint(folder / "r.pt");
  const std::vector<EmaOptions> configurations = {
      {},
      {.beta = 0.995, .update_after_step = 0, .update_every = 1},
      {.beta = 0.9,
       .update_after_step = 5,
       .update_every = 2,
       .inv_gamma = 2,
       .power = 0.75,
       .min_value = 0.1}};
  auto copy = [](const Value& state) {
    NamedTensors tensors;
    for (const auto& [name, tensor] : state.as_dict()) {
      tensors.emplace_back(name.as_string(), as_tensor(tensor).clone());
    }
    return tensors;
  };
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    const Value& reference = want["runs"].as_list()[c];
    NamedTensors online = copy(want["start"]), average = copy(want["start"]);
    NamedTensors resumed_average = copy(want["start"]);
    Ema ema(online, average, configurations[c]);
    Ema resumed(online, resumed_average, configurations[c]);
    double worst = 0, worst_resumed = 0;
    for (std::size_t t = 0; t < 200; ++t) {
      copy_tensors(want["noise"].as_list()[t], online, "r.pt");
      ema.update();
      if (t > 120) resumed.update();
      if (t == 120) resumed.load(reference["middle"], "r.pt");
      for (std::size_t i = 0; i < average.size(); ++i) {
        const torch::Tensor there = as_tensor(reference["track"].as_list()[t][average[i].first]);
        auto difference = [&](const NamedTensors& ours) {
          return (ours[i].second - there).abs().max().item<double>();
        };
        worst = std::max(worst, difference(average));
        if (t >= 120) worst_resumed = std::max(worst_resumed, difference(resumed_average));
      }
    }
    EXPECT_LT(worst, 1e-6) << "configuration " << c;
    EXPECT_LT(worst_resumed, 1e-6) << "configuration " << c;
    // The saved state has the names, dtypes and shapes of Python's.
    const Value state = ema.state();
    ASSERT_EQ(state.as_dict().size(), reference["end"].as_dict().size());
    for (const auto& [name, tensor] : reference["end"].as_dict()) {
      const torch::Tensor ours = as_tensor(state[name.as_string()]);
      EXPECT_EQ(ours.scalar_type(), as_tensor(tensor).scalar_type()) << name.as_string();
      EXPECT_EQ(ours.sizes(), as_tensor(tensor).sizes()) << name.as_string();
    }
    EXPECT_EQ(as_tensor(state["step"]).item<std::int64_t>(), 200);
    EXPECT_EQ(as_tensor(state["initted"]).item<bool>(),
              as_tensor(reference["end"]["initted"]).item<bool>());
  }
}

}  // namespace
}  // namespace millrace
