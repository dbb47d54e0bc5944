// From options to a run: the library millrace_trainers, which holds all that needs LibTorch.
#pragma once

#include "tools/train/train_options.h"

#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>
#include <millrace/training/device/accelerator.h>
#include <millrace/training/distributed/rank_group.h>
#include <millrace/training/loop/scheduler.h>
#include <millrace/training/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace millrace {

// Where this process stands: its GPU, and its place among the ranks. Either may be missing.
struct Place {
  std::unique_ptr<Accelerator> accelerator;
  std::unique_ptr<RankGroup> ranks;

  int rank() const { return ranks ? ranks->rank() : 0; }
  int world() const { return ranks ? ranks->world() : 1; }
  torch::Device device() const { return accelerator ? accelerator->device() : torch::kCPU; }
};

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

// Turns LibTorch's errors into ours.
int run_guarded(const std::function<int()>& body);

}  // namespace millrace
