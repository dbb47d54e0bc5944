// Options that all trainers share: those of the Python trainers with dashes, each also a key of a
// TOML file (--config). A trainer's program only parses its options, so it starts at once; the
// library that runs them (train_run.h) is opened afterwards.
#pragma once

#include "tools/cli/command_line.h"

#include <millrace/training/loop/checkpoint_numbers.h>
#include <millrace/training/optim/ema_options.h>
#include <millrace/training/optim/lr_schedule.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct TrainOptions {
  std::string folder;
  std::string results_folder = "./results";
  std::int64_t num_train_steps = 0;
  std::int64_t batch_size = 0;
  std::int64_t grad_accum_every = 1;
  std::int64_t save_results_every = 100;
  std::int64_t save_model_every = 1000;
  std::int64_t checkpoint_every = 0;
  std::string checkpoints_folder{};  // empty: the results folder
  std::string checkpoint_stem = "checkpoint";
  CheckpointNumbers checkpoint_numbers = CheckpointNumbers::steps_done;
  int keep = 3;
  double valid_frac = 0.05;
  std::int64_t valid_batches = 0;
  std::uint64_t random_split_seed = 42;
  std::string optimizer = "adam";
  double lr = 3e-4;
  std::vector<double> betas{};
  double eps = 1e-8;
  double weight_decay = 0;
  std::string schedule = "constant";
  ScheduleOptions lr_schedule{};
  bool use_ema = true;
  EmaOptions ema{.beta = 0.995, .update_after_step = 0, .update_every = 1};
  std::string mixed_precision = "no";
  std::string device = "auto";
  std::int64_t max_bad_steps = 10;
  std::uint64_t seed = 42;
  int threads = 0;
  int workers = 0;
  int prefetch = 4;
  std::string on_error = "skip";
  double max_error_share = 0.2;
  bool resume = false;
  bool clear = false;
  bool json = false;
  bool quiet = false;
};

// The flags by which the Python trainers name the same options. Null: the trainer lacks the option.
struct TrainNames {
  const char* folder = "folder,--folder";
  const char* lr = "--lr";
  const char* schedule = "--schedule";
  const char* save_results_every = "--save-results-every";
  const char* save_model_every = "--save-model-every";
  const char* checkpoint_every = "--checkpoint-every";
  const char* checkpoints_folder = nullptr;
  const char* valid_batches = "--valid-batches";
  bool average = true;  // the trainer keeps a moving average of the weights
};

void add_train_options(const Options& options, TrainOptions& values, const TrainNames& names = {});

// Opens the library millrace_trainers, which links LibTorch, and calls its function `name`, an
// int(const Options*, void* values).
int run_trainer(const std::string& name, const Options& options, void* values);

}  // namespace millrace
