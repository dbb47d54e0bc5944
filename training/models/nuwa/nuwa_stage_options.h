// How NUWA is trained (see nuwa_stage.h), without LibTorch.
//
//   NuwaStageOptions options{.max_grad_norm = 1, .prompts = {"3 7"}};
#pragma once

#include <millrace/decoders/text/tokenizer.h>
#include <millrace/training/device/device_id.h>
#include <millrace/training/models/nuwa/nuwa_generate_options.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct NuwaStageOptions {
  OptimizerOptions optimizer{.kind = OptimizerKind::adamw, .lr = 3e-4, .weight_decay = 0.01};
  double max_grad_norm = 0.5;  // 0: not clipped
  double cond_dropout_prob = 0.2;
  NuwaGenerateOptions generate{};  // of samples; its num_frames 0: as many as a clip has
  // Texts to show samples of; none: the first of the validation set.
  std::vector<std::string> prompts{};
  // Of prompts, and to tell in the log what a model was told.
  std::shared_ptr<const Tokenizer> tokenizer{};
  // Fields of the batch: float32 [rows, channels, frames, height, width] in [0, 1] or codes of any
  // integer type, and int64 [rows, words], padded with 0.
  std::string video = "video", tokens = "tokens";
  bool compat = false;     // operations and draws in Python's order
  std::uint64_t seed = 0;  // of the texts that are left out, and of samples
  DeviceId device{};
};

}  // namespace millrace
