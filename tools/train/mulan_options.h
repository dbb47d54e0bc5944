// train_mulan's options: filled by the program, read by the library that trains.
#pragma once

#include "tools/train/train_options.h"

#include <millrace/training/models/mulan/mulan_config.h>
#include <millrace/training/models/mulan/mulan_stage_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct MulanTrainOptions {
  TrainOptions train;
  MulanConfig model;
  MulanStageOptions stage;
  std::int64_t data_max_length = 0;  // samples; 0: whole files, cut to the shortest of a batch
  int sample_rate_hz = 16'000;
  std::string table, path_column = "path", caption_column = "caption";
  std::string bpe;  // a merges file; empty: every byte is a token
  bool truncate_captions = true;
  bool use_lion = false;
  bool force_clear_prev_results = false;
  std::vector<std::int64_t> patch_size{16};
  std::int64_t spec_hop_length = 0, hierarchical_layers = 0, num_tokens = 0;  // 0: see the flags
  std::string weights;

  MulanTrainOptions() {
    train.betas = {0.9, 0.99};
    train.use_ema = false;
    train.save_results_every = 100;
    train.save_model_every = 1000;
    model.audio.dim = model.text.dim = 512;
    model.audio.depth = model.text.depth = 6;
  }
};

}  // namespace millrace
