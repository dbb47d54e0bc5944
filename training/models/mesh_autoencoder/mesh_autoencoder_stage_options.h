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
  double max_grad_norm = 0;  // of those that decay, and of the others; 0: not clipped
  bool face_edges = true;    // are in the batch; otherwise they are found anew each time
  // See MeshAutoencoderImpl::set_faces_at_once.
  std::int64_t faces_at_once = 8192;
  std::int64_t num_save_recons = 6;  // meshes in reconstructed.<step>.png
  // Every operation of the optimizer in Python's order, so that sums round as its sums do.
  bool compat = false;
  // Of what the quantizers draw: it depends on the step and the meshes, not on which rank has them.
  // (With compat it is drawn as Python draws it.)
  std::uint64_t seed = 0;
  DeviceId device{};
};

}  // namespace millrace
