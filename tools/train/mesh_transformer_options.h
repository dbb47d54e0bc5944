// train_mesh_transformer's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/mesh_data_options.h"
#include "tools/train/train_options.h"

#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_stage_options.h>

#include <string>
#include <vector>

namespace millrace {

struct MeshTransformerTrainOptions {
  MeshTransformerTrainOptions() {  // defaults of the Python trainer
    train.checkpoints_folder = "./checkpoints";
    train.checkpoint_stem = "mesh-transformer.ckpt";
    train.checkpoint_numbers = CheckpointNumbers::checkpoints;
    train.save_results_every = 1;
    train.save_model_every = 0;
    train.checkpoint_every = 1000;
    train.valid_batches = 5;
    train.lr = 2e-4;
    train.betas = {0.9, 0.99};
    train.lr_schedule.warmup_steps = 1000;
    train.use_ema = false;
    model.max_seq_len = 0;
    model.dim_text = 0;
  }

  TrainOptions train;
  MeshTransformerConfig model{};
  MeshTransformerStageOptions stage{};
  std::string autoencoder{}, autoencoder_weights{}, autoencoder_config{};
  std::string weights{};
  MeshSourceOptions meshes{};

  // Flags that set no single member of the model's configuration.
  std::vector<std::string> attn_kwargs{"ff_glu=true", "attn_num_mem_kv=4"};
  std::string text_embeds{};
  TextEncoderConfig text_encoder{};
};

}  // namespace millrace
