// How a mesh autoencoder is trained (see mesh_autoencoder_stage.h), without LibTorch.
//
//   MeshAutoencoderStageOptions options{.max_grad_norm = 1};
#pragma once

#include <millrace/training/device/device_id.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>

namespace millrace {

struct MeshAutoencoderStageOptions {
  OptimizerOptions optimizer{.kind = OptimizerKind::adam, .lr = 1e-4, .betas = {0.9, 0.99}};
  // One norm for parameters with weight decay, one for the rest; 0 disables clipping.
  double max_grad_norm = 0;
  bool face_edges = true;  // read from the batch; false: computed in every step
  // See MeshAutoencoderImpl::set_faces_at_once.
  std::int64_t faces_at_once = 8192;
  std::int64_t num_save_recons = 6;  // meshes in reconstructed.<step>.png
  // Optimizer operations in the order of the Python package, so results are rounded the same way.
  bool compat = false;
  // Seed of the quantizers' random numbers. They depend on the step and the meshes, not on the
  // rank. (With `compat` they are drawn as in the Python trainer.)
  std::uint64_t seed = 0;
  DeviceId device{};
};

}  // namespace millrace
