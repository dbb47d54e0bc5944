// Weights that the trainer in Python saved, loaded here: the files in python_trainer/ are its own.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>
#include <millrace/training/models/vqgan/vqgan.h>
#include <millrace/training/optim/ema.h>
#include <millrace/training/optim/optimizer.h>

namespace millrace {
namespace {

std::filesystem::path saved(const std::string& name) {
  return std::filesystem::path(MILLRACE_SOURCE_DIR) / "tests/training/python_trainer" / name;
}

TEST(Weights, OfThePythonTrainerGiveItsReconstructions) {
  const Value wanted = read_checkpoint(saved("reconstructions.pt"));
  torch::NoGradGuard no_grad;
  for (const auto& [file, key] : std::vector<std::pair<std::string, std::string>>{
           {"vae.3.pt", "raw"}, {"trainer.pt", "raw"}, {"vae.3.ema.pt", "average"}}) {
    Vqgan model(VqganConfig::from_json(wanted["config"].as_string()));
    load_weights(saved(file), state_tensors(*model));
    model->eval();
    const torch::Tensor ours = model->reconstruct(as_tensor(wanted["img"]));
    const torch::Tensor theirs = as_tensor(wanted[key]);
    EXPECT_LT(((ours - theirs).norm() / theirs.norm()).item<double>(), 1e-5) << file;
  }
  // Or the comparison above would say nothing.
  EXPECT_GT((as_tensor(wanted["raw"]) - as_tensor(wanted["average"])).abs().max().item<double>(),
            1e-4);
}

// Its checkpoint holds everything under the names that ours has.
TEST(Weights, OfTheVideoTrainerInPythonGiveItsReconstructions) {
  const Value wanted = read_checkpoint(saved("video.reconstructions.pt"));
  const Value trainer = read_checkpoint(saved("video.trainer.pt"));
  auto check = [&](VideoTokenizer& model, const char* key) {
    torch::NoGradGuard no_grad;
    model->eval();
    const torch::Tensor ours = model->reconstruct(as_tensor(wanted["video"]));
    const torch::Tensor theirs = as_tensor(wanted[key]);
    EXPECT_LT(((ours - theirs).norm() / theirs.norm()).item<double>(), 1e-5) << key;
  };
  VideoTokenizer model(VideoTokenizerConfig::from_json(wanted["config"].as_string()));
  copy_tensors(trainer["model"], state_tensors(*model), "model");
  check(model, "raw");
  Optimizer generator(model->generator_parameters(), {.weight_decay = 0.01});
  generator.load(trainer["optimizer"], "optimizer");
  Optimizer discriminator(model->discriminator_parameters(), {.weight_decay = 0.01});
  discriminator.load(trainer["discr_optimizer"], "discr_optimizer");
  Ema ema(state_tensors(*model), state_tensors(*model));
  ema.load(trainer["ema_model"], "ema_model");
  EXPECT_EQ(ema.step(), 3);
  check(model, "average");
  EXPECT_GT((as_tensor(wanted["raw"]) - as_tensor(wanted["average"])).abs().max().item<double>(),
            1e-5);
}

TEST(Weights, OfAnotherModelAreRefusedByTheFirstTensorThatDiffers) {
  VqganConfig config =
      VqganConfig::from_json(read_checkpoint(saved("reconstructions.pt"))["config"].as_string());
  config.codebook_size = 64;
  Vqgan model(config);
  try {
    load_weights(saved("vae.3.pt"), state_tensors(*model));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("vae.3.pt: 'quantizer.mask' is [4], the model's is"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace millrace
