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
  double max_grad_norm = 0;                   // generator; 0 disables clipping
  double discr_max_grad_norm = 0;             // discriminator; 0 disables clipping
  std::int64_t apply_grad_penalty_every = 4;  // in steps; 0 disables the penalty
  // Factor of the adversarial loss, on top of the adaptive weight. Default: 1 with a perceptual
  // loss, as in the Python trainer; 0.1 without.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_step = 0;  // first step with an adversarial loss
  std::filesystem::path vgg{};        // VGG16 weights; empty: no perceptual loss
  // Batch field: float32 in [0, 1], [rows, channels, height, width], or [rows, channels, frames,
  // height, width], where every frame is one picture.
  std::string field = "image";
  // Reproduces the Python trainer: gradient penalty in every step (NUWA: in no step), and
  // operations in the order of the Python package, so results are rounded the same way.
  bool compat = false;
  DeviceId device{};
};

}  // namespace millrace
