// How MuLaN is trained (see mulan_stage.h), without LibTorch.
//
//   MulanStageOptions options{.contrasted = 32};
#pragma once

#include <millrace/training/device/device_id.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>
#include <string>

namespace millrace {

struct MulanStageOptions {
  OptimizerOptions optimizer{.lr = 3e-4, .betas = {0.9, 0.99}};
  double max_grad_norm = 0.5;  // 0 disables clipping
  // Pairs per step on all ranks; also the group size of the validation loss.
  std::int64_t contrasted = 2;
  std::string sounds = "audio";      // batch field, float32 [rows, samples]
  std::string tokens = "tokens";     // batch field, int64 [rows, length]
  std::string captions = "caption";  // batch field, for samples only
  // Seed of masks and patch dropout. They depend on the step and the row, not on the rank.
  std::uint64_t seed = 0;
  // Stored with the weights for programs that embed other audio: sample rate in Hz, and samples per
  // clip (0: any).
  int sample_rate_hz = 0;
  std::int64_t data_max_length = 0;
  DeviceId device{};
};

}  // namespace millrace
