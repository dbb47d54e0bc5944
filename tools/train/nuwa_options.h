// train_nuwa's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/train_options.h"

#include <millrace/training/models/nuwa/nuwa_config.h>
#include <millrace/training/models/nuwa/nuwa_stage_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct NuwaTrainOptions {
  NuwaTrainOptions() {  // defaults of the Python trainer
    train.results_folder = "./results-nuwa";
    train.batch_size = 4;
    train.grad_accum_every = 8;
    train.save_results_every = 1000;
    train.save_model_every = 2500;
    train.optimizer = "adamw";
    train.lr = 3e-4;
    train.weight_decay = 0.01;
    train.use_ema = false;
  }

  TrainOptions train;
  NuwaConfig model{};
  NuwaStageOptions stage{};
  std::string vae, vae_config, vae_weights;
  std::string weights;
  std::string dataset_type = "auto";  // gifs, videos, tokens
  std::string texts, digits;
  std::int64_t num_digits = 2;
  std::int64_t frame_stride = 1;
  std::string frame_choice = "first";
  std::string short_clips = "repeat";
  bool random_rotate = false;
  std::string bpe;
  bool no_cut = false;
  std::vector<std::int64_t> kernel{3};
  std::int64_t num_sampled_frames = 0;
};

}  // namespace millrace
