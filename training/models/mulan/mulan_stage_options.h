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
  double max_grad_norm = 0.5;    // 0: not clipped
  std::int64_t contrasted = 2;   // pairs of a step, on all ranks: what is held out is judged so too
  std::string sounds = "audio";  // fields of the batch: float32 [rows, samples]
  std::string tokens = "tokens";     // int64 [rows, places]
  std::string captions = "caption";  // to look at
  // Of masks and dropped patches: they depend on the step and the row, not on which rank has it.
  std::uint64_t seed = 0;
  // What sounds are, for whoever embeds others with the weights: Hz, and samples of each, or 0.
  int sample_rate_hz = 0;
  std::int64_t data_max_length = 0;
  DeviceId device{};
};

}  // namespace millrace
