// train_video_tokenizer's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/train_options.h"

#include <millrace/training/models/video_tokenizer/video_tokenizer_config.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_stage_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct VideoTokenizerTrainOptions {
  VideoTokenizerTrainOptions() {  // defaults of the Python trainer
    train.checkpoints_folder = "./checkpoints";
    train.checkpoint_numbers = CheckpointNumbers::checkpoints_after_first;
    train.save_model_every = 0;
    train.checkpoint_every = 100;
    train.optimizer = "adamw";
    train.lr = 1e-5;
    train.betas = {0.9, 0.99};
    train.weight_decay = 0.01;
    train.lr_schedule.warmup_steps = 1000;
    train.ema = {};
  }

  TrainOptions train;
  VideoTokenizerConfig model{};
  VideoTokenizerStageOptions stage{};
  std::string dataset_type = "videos";  // or images, mixed
  std::int64_t num_frames = 17;
  std::int64_t frame_stride = 1;
  std::string short_clips = "repeat";
  std::string weights{};

  // Flags that set no single member of the model's configuration.
  std::vector<std::string> layers{"residual", "residual", "residual"};
  std::vector<std::int64_t> residual_kernel{3}, input_kernel{7}, output_kernel{3};
  std::int64_t max_dim = 0;
  VideoDiscriminatorConfig discr{};
  std::vector<std::int64_t> multiscale_scales{};
  VideoDiscriminatorConfig multiscale{};
};

}  // namespace millrace
