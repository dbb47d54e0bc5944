// train_vqgan's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/train_options.h"

#include <millrace/training/models/vqgan/vqgan_config.h>
#include <millrace/training/models/vqgan/vqgan_stage_options.h>

#include <cstdint>
#include <string>

namespace millrace {

struct VqganTrainOptions {
  TrainOptions train;
  VqganConfig model{.dim = 0};
  VqganStageOptions stage;
  std::int64_t image_size = 0;
  std::string weights;
};

}  // namespace millrace
