// How a mesh transformer is trained (see mesh_transformer_stage.h), without LibTorch.
//
//   MeshTransformerStageOptions options{.codes_field = "tokens"};
#pragma once

#include <millrace/training/device/device_id.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>
#include <string>

namespace millrace {

struct MeshTransformerStageOptions {
  OptimizerOptions optimizer{.lr = 2e-4, .betas = {0.9, 0.99}};
  double max_grad_norm = 0.5;  // of each group of parameters; 0: not clipped
  // Of the batch: codes, collated by padding. Empty: "vertices", "faces" and "face_edges" are
  // encoded.
  std::string codes_field{};
  bool face_edges = true;  // false: found here, at every step
  // Of the batch, for a model that is conditioned on texts: one or the other.
  std::string text_field{};         // texts, for the encoder inside
  std::string text_embeds_field{};  // float32 [rows, words, dim_text], padded with 0
  // Meshes that are generated every so many steps, with a validation; 0: never.
  std::int64_t sample_every = 1000, num_samples = 8;
  double sample_temperature = 1;
  std::int64_t sample_max_faces = 200;  // 0: as many as the model can
  // When validations are: every so many steps, and after this one.
  std::int64_t validate_every = 1, last_step = -1;
  // Of what is drawn: which texts are dropped depends on the step and the meshes, not on which rank
  // has them. (With the model's `compat` it is drawn as Python draws it.)
  std::uint64_t seed = 0;
  DeviceId device{};
};

}  // namespace millrace
