// Compares Adam, AdamW and Lion with torch.optim and lion-pytorch over 200 steps, and exchanges
// saved states with them.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/optim/optimizer.h>

#include <map>
#include <string>

namespace millrace {
namespace {

// Three parameters with gradients that depend on them; the third has no gradient in two of three
// steps. Saves the parameters at each step, and the optimizer state after 100 steps.
const char* const reference = R"(
import copy, sys, torch
from lion_pytorch import Lion
torch.manual_seed(0)
start = [torch.randn(4, 5), torch.randn(5), torch.randn(2, 3, 3, 3)]
noise = [[torch.randn_like(p) for p in start] for _ in range(200)]
def groups(ps): return [{'params': [ps[0], ps[2]]}, {'params': [ps[1]], 'weight_decay': 0}]
makers = {
  'adam': lambda ps: torch.optim.Adam(ps, lr=3e-4),
  'adam_l2': lambda ps: torch.optim.Adam(groups(ps), lr=3e-3, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
  'adamw': lambda ps: torch.optim.AdamW(groups(ps), lr=3e-3, weight_decay=0.05),
  'lion': lambda ps: Lion(ps, lr=1e-4),
  'lion_decay': lambda ps: Lion(groups(ps), lr=3e-4, betas=(0.95, 0.98), weight_decay=0.1),
}
def run(name, ps, opt, first, last, track):
    for t in range(first, last):
        for i, p in enumerate(ps): p.grad = None if i == 2 and t % 3 else noise[t][i] + 0.5 * p.detach()
        opt.step()
        track.append(torch.cat([p.detach().flatten() for p in ps]))
out = {'start': start, 'noise': noise, 'runs': {}}
for name, make in makers.items():
    track = []
    ps = [torch.nn.Parameter(p.clone()) for p in start]
    opt = make(ps)
    run(name, ps, opt, 0, 100, track)
    middle = {'params': [p.detach().clone() for p in ps], 'state': opt.state_dict()}
    middle = copy.deepcopy(middle)
    run(name, ps, opt, 100, 200, track)
    out['runs'][name] = {'track': torch.stack(track), 'middle': middle}
torch.save(out, sys.argv[1])
)";

const std::map<std::string, OptimizerOptions> makers = {
    {"adam", {.lr = 3e-4}},
    {"adam_l2", {.lr = 3e-3, .betas = {0.8, 0.95}, .eps = 1e-6, .weight_decay = 0.1}},
    {"adamw", {.kind = OptimizerKind::adamw, .lr = 3e-3, .weight_decay = 0.05}},
    {"lion", {.kind = OptimizerKind::lion, .lr = 1e-4, .betas = {0.9, 0.99}}},
    {"lion_decay",
     {.kind = OptimizerKind::lion, .lr = 3e-4, .betas = {0.95, 0.98}, .weight_decay = 0.1}},
};

std::vector<torch::Tensor> copies(const Value& tensors) {
  std::vector<torch::Tensor> result;
  for (const Value& tensor : tensors.as_list()) {
    result.push_back(as_tensor(tensor).clone().set_requires_grad(true));
  }
  return result;
}

// Runs steps `first` to `last` and returns the largest difference from the reference on the way.
double run(Optimizer& optimizer, std::vector<torch::Tensor>& parameters, const Value& noise,
           const torch::Tensor& track, std::int64_t first, std::int64_t last) {
  double worst = 0;
  for (std::int64_t t = first; t < last; ++t) {
    const auto& gradients = noise.as_list()[static_cast<std::size_t>(t)].as_list();
    optimizer.zero_grad();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (i == 2 && t % 3 != 0) continue;
      parameters[i].mutable_grad() = as_tensor(gradients[i]) + 0.5 * parameters[i].detach();
    }
    optimizer.step();
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& p : parameters) flat.push_back(p.detach().flatten());
    worst = std::max(worst, (torch::cat(flat) - track[t]).abs().max().item<double>());
  }
  return worst;
}

TEST(Optimizer, EqualsThePythonPackagesOver200Steps) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  run_python(reference, (folder / "r.pt").string());
  const Value want = read_checkpoint(folder / "r.pt");
  for (const auto& [name, options] : makers) {
    const Value& reference_run = want["runs"][name];
    const torch::Tensor track = as_tensor(reference_run["track"]);
    std::vector<torch::Tensor> parameters = copies(want["start"]);
    Optimizer optimizer(parameters, options);
    EXPECT_LT(run(optimizer, parameters, want["noise"], track, 0, 200), 1e-6) << name;
    EXPECT_GT((track[199] - track[0]).abs().max().item<double>(), 1e-3) << name;

    // The reference path is bit-identical.
    std::vector<torch::Tensor> exact = copies(want["start"]);
    OptimizerOptions reference_options = options;
    reference_options.as_in_python = true;
    Optimizer third(exact, reference_options);
    EXPECT_EQ(run(third, exact, want["noise"], track, 0, 200), 0) << name;

    // Continues from Python's state after 100 steps.
    std::vector<torch::Tensor> resumed = copies(reference_run["middle"]["params"]);
    Optimizer second(resumed, options);
    second.load(reference_run["middle"]["state"], "r.pt");
    EXPECT_LT(run(second, resumed, want["noise"], track, 100, 200), 1e-6) << name;
  }
}

TEST(Optimizer, StateIsTakenByPython) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  run_python(reference, (folder / "r.pt").string());
  const Value want = read_checkpoint(folder / "r.pt");
  Dict states;
  for (const auto& [name, options] : makers) {
    std::vector<torch::Tensor> parameters = copies(want["start"]);
    Optimizer optimizer(parameters, options);
    run(optimizer, parameters, want["noise"], as_tensor(want["runs"][name]["track"]), 0, 100);
    Value held = List{{to_value(parameters[0]), to_value(parameters[1]), to_value(parameters[2])}};
    states.set(name, Dict{{"params", held}, {"state", optimizer.state()}});
  }
  write_checkpoint(folder / "ours.pt", states);
  const std::string text =
      run_python(std::string(reference) + R"(
ours = torch.load(sys.argv[2], weights_only=True)
for name, make in makers.items():
    ps = [torch.nn.Parameter(p) for p in ours[name]['params']]
    opt = make(ps)
    keys = {k for g in opt.state_dict()['param_groups'] for k in g}
    opt.load_state_dict(ours[name]['state'])
    assert keys <= {k for g in opt.state_dict()['param_groups'] for k in g} | {'decoupled_weight_decay'}, keys
    track = []
    run(name, ps, opt, 100, 200, track)
    diff = (torch.stack(track) - out['runs'][name]['track'][100:]).abs().max().item()
    assert diff < 1e-6, (name, diff)
print('taken')
)",
                 (folder / "r.pt").string() + " " + (folder / "ours.pt").string());
  EXPECT_EQ(text, "taken\n");
}

TEST(Optimizer, RefusesTheStateOfOtherParameters) {
  auto parameter = [](std::vector<std::int64_t> shape) {
    return torch::ones(shape).set_requires_grad(true);
  };
  Optimizer two({parameter({2, 2}), parameter({3})}, {});
  for (torch::Tensor p : two.parameters()) p.mutable_grad() = torch::ones_like(p);
  two.step();
  Optimizer three({parameter({2, 2}), parameter({3}), parameter({1})}, {});
  EXPECT_THROW(three.load(two.state(), "a.pt"), Error);
  Optimizer other({parameter({2, 2}), parameter({4})}, {});
  try {
    other.load(two.state(), "a.pt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("exp_avg of parameter 1 is [3], not [4]"),
              std::string::npos);
  }
  EXPECT_THROW(optimizer_kind("sgd"), Error);
}

TEST(Optimizer, ClipsTheCommonNorm) {
  torch::Tensor a = torch::zeros({3}).set_requires_grad(true);
  torch::Tensor b = torch::zeros({1}).set_requires_grad(true);
  Optimizer optimizer({a, b}, {});
  a.mutable_grad() = torch::full({3}, 2.0);
  b.mutable_grad() = torch::full({1}, 2.0);
  EXPECT_DOUBLE_EQ(optimizer.clip(1), 4);
  EXPECT_NEAR(a.grad()[0].item<double>(), 0.5, 1e-6);
  EXPECT_NEAR(optimizer.clip(100), 1, 1e-5);
  EXPECT_NEAR(b.grad()[0].item<double>(), 0.5, 1e-6);
}

}  // namespace
}  // namespace millrace
