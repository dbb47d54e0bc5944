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
  double max_grad_norm = 0.5;  // 0 disables clipping
  double cond_dropout_prob = 0.2;
  NuwaGenerateOptions generate{};  // for samples; num_frames 0: the length of a clip
  // Texts to generate samples for; empty: the first text of the validation batch.
  std::vector<std::string> prompts{};
  // Encodes the prompts, and decodes tokens for the log. May be null without prompts.
  std::shared_ptr<const Tokenizer> tokenizer{};
  // Batch fields. `video`: float32 [rows, channels, frames, height, width] in [0, 1], or codes of
  // any integer type. `tokens`: int64 [rows, words], padded with 0.
  std::string video = "video", tokens = "tokens";
  bool compat = false;     // operations and random draws in the order of the Python package
  std::uint64_t seed = 0;  // for dropping texts and for sampling
  DeviceId device{};
};

}  // namespace millrace
