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
  double max_grad_norm = 0.5;  // of each parameter group; 0 disables clipping
  // Batch field with precomputed codes, collated with padding. Empty: the fields "vertices",
  // "faces" and "face_edges" are encoded.
  std::string codes_field{};
  bool face_edges = true;  // read face_edges from the batch; false: compute them in every step
  // Batch fields for a model that is conditioned on text; set one of the two.
  std::string text_field{};         // texts, for the model's text encoder
  std::string text_embeds_field{};  // float32 [rows, words, dim_text], padded with 0
  // Generates num_samples meshes with a validation, every sample_every steps; 0 disables samples.
  std::int64_t sample_every = 1000, num_samples = 8;
  double sample_temperature = 1;
  std::int64_t sample_max_faces = 200;  // 0: the model's limit
  // The interval of validations in steps, and the last step; needed to choose when to sample.
  std::int64_t validate_every = 1, last_step = -1;
  // Seed of the dropped texts. They depend on the step and the meshes, not on the rank. (With the
  // model's `compat` they are drawn as in the Python trainer.)
  std::uint64_t seed = 0;
  DeviceId device{};
};

}  // namespace millrace
