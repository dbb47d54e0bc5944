// How a VQGAN-VAE is trained (see vqgan_stage.h), without LibTorch.
//
//   VqganStageOptions options{.max_grad_norm = 1, .vgg = "vgg16.pt"};
#pragma once

#include <millrace/training/device/device_id.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

struct VqganStageOptions {
  OptimizerOptions optimizer{.lr = 3e-4};
  double max_grad_norm = 0;                   // of the generator; 0: not clipped
  double discr_max_grad_norm = 0;             // of the discriminator
  std::int64_t apply_grad_penalty_every = 4;  // steps; 0: never
  // How much of the adversarial loss there is, beside the loss that it is weighed against; by
  // default 1 beside the perceptual loss, as in Python, and less beside the reconstruction alone.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_step = 0;  // until then there is none of it
  std::filesystem::path vgg{};        // VGG16's weights; empty: no perceptual loss
  // Of the batch: float32 in [0, 1], [rows, channels, height, width], or with frames before the
  // height, each of which is a picture.
  std::string field = "image";
  // As the trainer in Python does it: the gradient penalty in every step (NUWA's: in none), and
  // every operation in its order, so that sums round as its sums do.
  bool compat = false;
  DeviceId device{};
};

}  // namespace millrace
