// What all trainers have in common on their command lines: the seeds' options with dashes, each
// also a key of a TOML file (--config), and the way from them to loaders and the scheduler.
#pragma once

#include "tools/command_line.h"

#include <millrace/pipeline/loader.h>
#include <millrace/pipeline/subset.h>
#include <millrace/training/accelerator.h>
#include <millrace/training/optimizer.h>
#include <millrace/training/rank_group.h>
#include <millrace/training/scheduler.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

  OldRun old_run() const {
    return resume ? OldRun::resume : clear ? OldRun::clear : OldRun::refuse;
  }
};

// Where this process stands: its GPU, and its place among the ranks. Either may be missing.
struct Place {
  std::unique_ptr<Accelerator> accelerator;
  std::unique_ptr<RankGroup> ranks;

  int rank() const { return ranks ? ranks->rank() : 0; }
  int world() const { return ranks ? ranks->world() : 1; }
  torch::Device device() const { return accelerator ? accelerator->device() : torch::kCPU; }
};

void add_train_options(CLI::App& app, TrainOptions& options);
OptimizerOptions optimizer_options(const TrainOptions& options);
SchedulerOptions scheduler_options(const TrainOptions& options, const Place& place);

// Throws an Error of kind usage that names the numbers if so many samples give no batch.
void check_sizes(const TrainOptions& options, std::int64_t samples);

// Finds the GPU, joins the ranks that the environment tells of, seeds, and runs `body`. If that
// fails on one rank, the others are told why.
int run_in_place(const TrainOptions& options, const std::function<int(const Place&)>& body);

// The folder of the run: rank 0 makes it, refuses or clears what is there, and leaves the whole
// configuration in it: config.toml, which --config takes.
RunFolder open_run_folder(const CLI::App& app, const TrainOptions& options, const Place& place);

// The split, and a loader over this rank's share of each part. `augmented` and `plain` are the same
// files, with and without what is random; validation sees the latter.
struct TrainingData {
  TrainingData(const TrainOptions& options, const Place& place, const AnyDataset& augmented,
               const AnyDataset& plain, LoaderOptions loader_options);

  Loader train;
  std::optional<Loader> valid;  // none where there are fewer samples than ranks
};

// Resumes if asked to, adds the trackers, shows progress, trains, and prints the result.
int run(const CLI::App& app, const TrainOptions& options, const Place& place,
        const RunFolder& folder, Scheduler& scheduler);

// Parses, runs `body`, and turns errors, LibTorch's as well, into one line and an exit code.
int train_main(CommandLine& line, int argc, char** argv, const std::function<int()>& body);

}  // namespace millrace
