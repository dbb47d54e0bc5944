// train_nuwa_vae's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/train_options.h"

#include <millrace/training/models/nuwa/nuwa_vqgan_config.h>
#include <millrace/training/models/vqgan/vqgan_stage_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct NuwaVaeTrainOptions {
  NuwaVaeTrainOptions() {  // defaults of the Python trainer
    train.ema.update_after_step = 2000;
    train.ema.update_every = 10;
  }

  TrainOptions train;
  NuwaVqganConfig model{};
  VqganStageOptions stage;
  std::string dataset_type = "auto";  // images, videos, or a .npy of them
  std::int64_t num_frames = 1;
  double flip = 0;
  bool random_rotate = false;
  std::vector<std::string> use_attn{"true"};  // as flags have them
  std::string weights;
};

}  // namespace millrace
