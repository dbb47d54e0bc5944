// Compares mixed precision with torch.amp, and checks that a run on the CPU does not load
// millrace_gpu.
#include "tests/training/programs/child_program.h"
#include "tests/training/programs/tiny_command.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/accelerator.h>
#include <millrace/training/device/precision.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <chrono>
#include <thread>

#include <ATen/autocast_mode.h>

namespace millrace {
namespace {

const LossScalerOptions quick{.init_scale = 1024, .growth_interval = 3};

// Steps with a gradient that is not finite.
bool is_bad(int step) {
  return step == 0 || step == 4 || step == 5 || step == 13;
}

std::vector<double> scales_of(LossScaler& scaler, int first, int last) {
  std::vector<double> scales;
  torch::Tensor parameter = torch::ones({3}).requires_grad_();
  for (int step = first; step < last; ++step) {
    const double scale = scaler.scale();
    parameter.mutable_grad() = torch::full({3}, 2 * scale, torch::kFloat32);
    if (is_bad(step)) parameter.grad()[1] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(scaler.unscale({parameter}), !is_bad(step)) << step;
    if (!is_bad(step)) {
      EXPECT_TRUE(parameter.grad().eq(2).all().item<bool>());
    }
    scaler.update();
    scales.push_back(scaler.scale());
  }
  return scales;
}

TEST(LossScaler, FollowsTheRulesOfGradScaler) {
  LossScaler scaler(quick);
  const std::vector<double> ours = scales_of(scaler, 0, 20);
  EXPECT_EQ(ours[0], 512);   // backed off
  EXPECT_EQ(ours[3], 1024);  // grown after three good steps
#if MILLRACE_PYTHON_TORCH
  const std::string theirs = run_python(R"(
import torch
scaler = torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=3)
p = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([p], lr=0.1)
for step in range(20):
    scaler.scale(torch.ones(()))
    p.grad = torch.full((3,), 2 * scaler.get_scale())
    if step in (0, 4, 5, 13): p.grad[1] = float("inf")
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale())
state = scaler.state_dict()
print(" ".join(f"{key}={float(state[key])}" for key in sorted(state)))
)");
  std::istringstream lines(theirs);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    double scale = 0;
    lines >> scale;
    EXPECT_EQ(ours[i], scale) << "step " << i;
  }
  const Value state = scaler.state();
  for (std::string entry; lines >> entry;) {
    const std::string name = entry.substr(0, entry.find('='));
    const Value& value = state[name];
    EXPECT_EQ(value.is<std::int64_t>() ? static_cast<double>(value.as_int()) : value.as_double(),
              std::stod(entry.substr(name.size() + 1)))
        << entry;
  }
#endif
}

TEST(LossScaler, GoesOnFromACheckpoint) {
  LossScaler straight(quick), first(quick);
  const std::vector<double> all = scales_of(straight, 0, 20);
  scales_of(first, 0, 7);
  TemporaryFolder folder;
  write_checkpoint(folder / "scaler.pt", first.state());
  LossScaler second;
  second.load(read_checkpoint(folder / "scaler.pt"));
  EXPECT_EQ(scales_of(second, 7, 20), std::vector<double>(all.begin() + 7, all.end()));
}

#if MILLRACE_PYTHON_TORCH
// The same operators run in bfloat16 as under Python's autocast, so the results are the same.
TEST(Autocast, CastsWhatPythonCasts) {
  TemporaryFolder folder;
  const std::string path = (folder / "reference.pt").string();
  run_python(R"(
import sys, torch
torch.manual_seed(2)
x = torch.randn(2, 3, 16, 16)
conv, norm = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.GroupNorm(4, 16)
linear = torch.nn.Linear(16, 8)
with torch.autocast("cpu", torch.bfloat16):
    y = torch.nn.functional.leaky_relu(norm(conv(x)), 0.1)
    z = linear(y.mean((2, 3)))
    loss = (z.softmax(-1) * z).sum() + torch.nn.functional.mse_loss(y, torch.ones_like(y))
loss.backward()
tensors = dict(x=x, conv_w=conv.weight, conv_b=conv.bias, norm_w=norm.weight, norm_b=norm.bias,
               linear_w=linear.weight, linear_b=linear.bias, loss=loss, z=z, conv_g=conv.weight.grad)
torch.save({k: v.detach() for k, v in tensors.items()}, sys.argv[1])
)",
             path);
  const Value reference = read_checkpoint(path);
  auto tensor = [&](const char* name) { return as_tensor(reference[name]); };
  torch::Tensor weight = tensor("conv_w").clone().requires_grad_();
  torch::Tensor loss, z;
  {
    const Autocast autocast(Precision::bf16, torch::kCPU);
    namespace F = torch::nn::functional;
    torch::Tensor y = torch::conv2d(tensor("x"), weight, tensor("conv_b"), 1, 1);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    y = torch::leaky_relu(torch::group_norm(y, 4, tensor("norm_w"), tensor("norm_b")), 0.1);
    z = F::linear(y.mean({2, 3}), tensor("linear_w"), tensor("linear_b"));
    loss = (z.softmax(-1) * z).sum() + F::mse_loss(y, torch::ones_like(y));
  }
  loss.backward();
  EXPECT_EQ(z.scalar_type(), tensor("z").scalar_type());
  EXPECT_EQ(loss.scalar_type(), tensor("loss").scalar_type());
  EXPECT_NEAR(loss.item<double>(), tensor("loss").item<double>(), 1e-3);
  EXPECT_EQ(weight.grad().scalar_type(), torch::kFloat32);
  EXPECT_LT((weight.grad() - tensor("conv_g")).norm().item<double>(),
            0.02 * tensor("conv_g").norm().item<double>());
}
#endif

TEST(Autocast, KeepsLossesCloseAndWeightsWhole) {
  torch::manual_seed(4);
  Vqgan model(VqganConfig{.dim = 16, .layers = 2, .codebook_size = 64, .discr_layers = 1});
  const torch::Tensor pictures = torch::rand({2, 3, 32, 32});
  const double full = model->generator_loss(pictures).reconstruction.item<double>();
  GeneratorLoss half;
  {
    const Autocast autocast(Precision::bf16, torch::kCPU);
    half = model->generator_loss(pictures);
  }
  EXPECT_EQ(half.pictures.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(half.quantizer.scalar_type(), torch::kFloat32);  // the quantizer stays in 32 bits
  EXPECT_NEAR(half.reconstruction.item<double>(), full, 0.02 * full);
  half.backward();
  for (const torch::Tensor& parameter : model->generator_parameters()) {
    EXPECT_EQ(parameter.scalar_type(), torch::kFloat32);
    EXPECT_EQ(parameter.grad().scalar_type(), torch::kFloat32);
  }
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(Accelerator, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(find_accelerator("cpu", 0), nullptr);
  EXPECT_THROW(find_accelerator("cuda:x", 0), Error);
  EXPECT_THROW(find_accelerator("tpu", 0), Error);
}

TEST(Accelerator, IsNeitherLinkedNorLoadedByARunOnTheCpu) {
  const std::string linked = run_command(std::string("ldd ") + MILLRACE_TRAIN_VQGAN);
  EXPECT_EQ(linked.find("libtorch_cuda"), std::string::npos);
  TemporaryFolder folder;
  make_pictures(folder / "pictures", 8);
  ChildProgram run(MILLRACE_TRAIN_VQGAN,
                   tiny_command(folder / "pictures", folder / "r", 1'000'000, {"--device", "cpu"}),
                   folder / "errors");
  for (int i = 0; i < 3000 && text_of(folder / "r" / "metrics.jsonl").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::string maps = text_of("/proc/" + std::to_string(run.id()) + "/maps");
  EXPECT_NE(maps.find("libtorch_cpu"), std::string::npos) << run.errors();
  for (const char* name : {"libtorch_cuda", "libc10_cuda", "libnccl", "libmillrace_gpu"}) {
    EXPECT_EQ(maps.find(name), std::string::npos) << name;
  }
}

#ifdef MILLRACE_GPU_MODULE
// Without a GPU the test can only check that every symbol of the library is resolved.
TEST(Accelerator, OpensItsLibrary) {
  run_python(
      "import ctypes, os, sys\n"
      "ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW).millrace_open_accelerator\n",
      MILLRACE_GPU_MODULE);
}
#endif

}  // namespace
}  // namespace millrace
