// Runs a training with the options of a trainer's program. Part of the library millrace_trainers,
// which holds everything that needs LibTorch.
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

// The process's device and rank. Without a GPU or without ranks, the pointer is null.
struct ProcessContext {
  std::unique_ptr<Accelerator> accelerator;
  std::unique_ptr<RankGroup> ranks;

  int rank() const { return ranks ? ranks->rank() : 0; }
  int world() const { return ranks ? ranks->world() : 1; }
  torch::Device device() const { return accelerator ? accelerator->device() : torch::kCPU; }
};

OptimizerOptions optimizer_options(const TrainOptions& options);
SchedulerOptions scheduler_options(const TrainOptions& options, const ProcessContext& context);

// Throws an Error of kind usage that names the numbers if `samples` are too few for one batch.
void check_sizes(const TrainOptions& options, std::int64_t samples);

// Finds the GPU, joins the ranks that the environment describes, seeds, and runs `body`. If that
// fails on one rank, the other ranks receive the reason.
int run_in_context(const TrainOptions& options,
                   const std::function<int(const ProcessContext&)>& body);

// The folder of the run. Rank 0 creates it, refuses or clears an earlier run, and writes all
// options to config.toml, for --config.
RunFolder open_run_folder(const Options& flags, const TrainOptions& options,
                          const ProcessContext& context);

// The split into training and validation set, and a loader over this rank's share of each.
// `augmented` and `plain` are the same files with and without random augmentation; validation uses
// the latter.
struct TrainingData {
  TrainingData(const TrainOptions& options, const ProcessContext& context,
               const AnyDataset& augmented, const AnyDataset& plain, LoaderOptions loader_options);

  Loader train;
  std::optional<Loader> valid;  // none where there are fewer samples than ranks
};

// Resumes if --resume is given, adds the trackers, shows progress, trains, and prints the result.
int run(const Options& flags, const TrainOptions& options, const ProcessContext& context,
        const RunFolder& folder, Scheduler& scheduler);

// Converts LibTorch's exceptions to Error.
int run_guarded(const std::function<int()>& body);

}  // namespace millrace
