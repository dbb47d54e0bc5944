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
  double max_grad_norm = 0;  // of the generator, and of each discriminator; 0: not clipped
  std::int64_t apply_gradient_penalty_every = 4;
  // How much of the adversarial losses there is, beside the loss that they are weighed against; by
  // default 1 beside the perceptual loss, as in Python, and less beside the reconstruction alone.
  std::optional<double> adversarial_weight{};
  std::int64_t discr_start_after_step = 0;   // until then without discriminators
  std::int64_t validate_every_step = 100;    // sampled.<n>.gif counts these
  std::int64_t num_save_recons = 1;          // clips in it, one below the other
  bool sample_average = true;                // it shows the moving average, not the model
  std::filesystem::path vgg{};               // VGG16's weights; empty: no perceptual loss
  std::string field = "video";               // of the batch: float32 in [0, 1], channels first
  std::string valid_field = "valid_frames";  // of the batch; empty: all frames count
  bool recompute = false;                    // activations, in the backward pass: less memory
  // Every operation of the optimizers in Python's order, so that sums round as its sums do.
  bool compat = false;
  // Of the frames that discriminators see: they depend on the step and the clips, not on which rank
  // has them. (With compat they are drawn as Python draws them.)
  std::uint64_t seed = 0;
  DeviceId device{};
};

}  // namespace millrace
