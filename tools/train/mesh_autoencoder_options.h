// train_mesh_autoencoder's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/mesh_data_options.h"
#include "tools/train/train_options.h"

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_stage_options.h>

#include <string>
#include <vector>

namespace millrace {

struct MeshAutoencoderTrainOptions {
  MeshAutoencoderTrainOptions() {  // defaults of the Python trainer
    train.checkpoints_folder = "./checkpoints";
    train.checkpoint_stem = "mesh-autoencoder.ckpt";
    train.checkpoint_numbers = CheckpointNumbers::checkpoints;
    train.save_results_every = 100;
    train.save_model_every = 0;
    train.checkpoint_every = 1000;
    train.valid_batches = 5;
    train.lr = 1e-4;
    train.betas = {0.9, 0.99};
    train.lr_schedule.warmup_steps = 1000;
    train.ema = {};
    meshes.data.max_faces = 16384;  // one of a million would take all memory
  }

  TrainOptions train;
  MeshAutoencoderConfig model{};
  MeshAutoencoderStageOptions stage{};
  MeshSourceOptions meshes{};
  std::string over_long = "skip";
  std::string weights{};

  // Flags that set no single member of the model's configuration.
  std::vector<double> coordinate_range{-1, 1};
  double soft_clamp = 10;  // 0: none
};

}  // namespace millrace
