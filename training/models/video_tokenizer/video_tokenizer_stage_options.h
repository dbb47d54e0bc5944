// How a video tokenizer is trained (see video_tokenizer_stage.h), without LibTorch.
//
//   VideoTokenizerStageOptions options{.max_grad_norm = 1, .vgg = "vgg16.pt"};
#pragma once

#include <millrace/training/device/device_id.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

struct VideoTokenizerStageOptions {
  OptimizerOptions optimizer{
      .kind = OptimizerKind::adamw, .lr = 1e-5, .betas = {0.9, 0.99}, .weight_decay = 0.01};
  double max_grad_norm = 0;  // generator and each discriminator; 0 disables clipping
  std::int64_t apply_gradient_penalty_every = 4;
  // Factor of the adversarial losses, on top of the adaptive weight. Default: 1 with a perceptual
  // loss or with `compat`, as in the Python trainer; otherwise 0.1.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_after_step = 0;   // first step with discriminators
  std::int64_t validate_every_step = 100;    // interval by which sampled.<n>.gif is numbered
  std::int64_t num_save_recons = 1;          // clips in sampled.<n>.gif, one below the other
  bool sample_average = true;                // sample from the moving average instead of the model
  std::filesystem::path vgg{};               // VGG16 weights; empty: no perceptual loss
  std::string field = "video";               // batch field: float32 in [0, 1], channels first
  std::string valid_field = "valid_frames";  // batch field; empty: all frames are valid
  bool recompute = false;                    // gradient checkpointing: less memory, more time
  // Optimizer operations in the order of the Python package, so results are rounded the same way.
  bool compat = false;
  // Seed of the frames that discriminators see. They depend on the step and the clips, not on the
  // rank. (With `compat` they are drawn as in the Python trainer.)
  std::uint64_t seed = 0;
  DeviceId device{};
};

}  // namespace millrace
