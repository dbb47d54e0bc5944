// What examples of training/ use and do not declare.
#pragma once

#include "tests/examples/prelude.h"

#include <millrace/training.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>
#include <millrace/training/models/vqgan/vqgan.h>

namespace millrace_examples {

extern torch::Tensor loss, images, picture, features, video, text, tokens, sound, sounds, vertices,
    faces, pairs, codes;
extern std::vector<torch::Tensor> parameters;
extern millrace::NamedTensors tensors, named_tensors, named_parameters;
extern millrace::Vqgan model, average;
extern millrace::NuwaVqgan vae;
extern millrace::MeshAutoencoder autoencoder;
extern millrace::MeshTransformerConfig config;
extern millrace::Optimizer optimizer;
extern millrace::Schedule schedule;
extern millrace::RankGroup ranks;
extern millrace::Stage& stage;
extern millrace::Loader loader, train_loader, valid_loader;
extern millrace::Batch first, last;
extern std::int64_t step, first_step;
extern double scale;
torch::Tensor loss_of(const millrace::Batch& batch);
void work_on(int shard);

}  // namespace millrace_examples
