// The training loop that all trainers share: steps, validation, samples, checkpoints, EMA, learning
// rate schedule, trackers and signals. The Stage defines what a step computes.
//
//   RunFolder folder("results", OldRun::resume);      // must outlive the scheduler
//   Scheduler scheduler(stage, train_loader, &valid_loader, folder,
//                       {.num_train_steps = 10'000, .checkpoint_every = 500});
//   scheduler.resume();          // from the newest checkpoint, if there is one
//   return scheduler.run();      // 0, or 128 + the signal that ended it
#pragma once

#include <millrace/pipeline/loader/loader.h>
#include <millrace/training/device/precision.h>
#include <millrace/training/distributed/gradient_sync.h>
#include <millrace/training/distributed/rank_group.h>
#include <millrace/training/loop/run_folder.h>
#include <millrace/training/loop/stage.h>
#include <millrace/training/loop/step_meter.h>
#include <millrace/training/optim/ema.h>
#include <millrace/training/optim/lr_schedule.h>
#include <millrace/training/tracking/tracker.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

struct SchedulerOptions {
  std::int64_t num_train_steps = 0;
  std::int64_t grad_accum_every = 1;
  std::int64_t save_results_every = 100;  // steps between validations with samples; 0: never
  std::int64_t save_model_every = 1000;   // steps between files with weights only; 0: never
  std::int64_t checkpoint_every = 0;      // steps between checkpoints; 0: save_model_every
  CheckpointNumbers checkpoint_numbers = CheckpointNumbers::steps_done;
  int keep = 3;                    // number of checkpoints to keep; 0 keeps all
  std::int64_t valid_batches = 0;  // number of validation batches per rank; 0: all
  bool use_ema = true;
  EmaOptions ema{};
  ScheduleOptions schedule{};
  Precision precision = Precision::full;
  LossScalerOptions scaler{};       // used with fp16 only
  std::int64_t max_bad_steps = 10;  // consecutive steps without a finite loss that end the run
  // The ranks of a distributed run; null for a single process. The caller gives each rank loaders
  // over its own part: the training loader with `rank`, `world` and `group` set, the validation
  // loader over a part of the set (null if the part is empty). Only rank 0 writes files.
  RankGroup* ranks = nullptr;
  Accelerator* accelerator = nullptr;  // null: train on the CPU
};

// Progress of a run, after a step.
struct StepReport {
  std::int64_t step = 0;     // number of steps done
  Logs losses{};             // loss of each phase in the last step
  StepMeter::Rates rates{};  // over the last ten seconds
  double padding = 0;        // fraction of padding in all batches so far
};

class Scheduler {
 public:
  // The scheduler borrows stage, loaders and folder; they must outlive it. Without `valid` the run
  // has neither validation nor samples.
  Scheduler(Stage& stage, Loader& train, Loader* valid, const RunFolder& folder,
            SchedulerOptions options, std::vector<std::unique_ptr<Tracker>> trackers = {});
  ~Scheduler();

  // Loads the newest checkpoint, if any. Returns the number of steps done, or 0. Trackers need that
  // number, so add them after this call.
  std::int64_t resume();
  void add_tracker(std::unique_ptr<Tracker> tracker);
  // Called on rank 0 after every step, on the thread of run(), e.g. to draw a progress bar. Without
  // a callback run() logs a line every ten seconds.
  void set_step_callback(std::function<void(const StepReport&)> callback) {
    step_callback_ = std::move(callback);
  }

  // Trains until num_train_steps or a signal, then writes a checkpoint. Returns 0, or 128 + the
  // signal number.
  int run();

  std::int64_t step() const { return step_; }
  const Logs& last_logs() const { return logs_; }
  StepMeter::Rates rates() const { return meter_.whole(); }
  // Number of steps skipped because a loss or a gradient was not finite.
  std::int64_t bad_steps() const { return bad_steps_; }

 private:
  struct Interrupted {};  // thrown out of validation when a signal came

  void train_step();
  void run_phase(const Phase& phase, std::size_t number);
  void step_optimizer(const PhaseOptimizer& one, const Phase& phase, double factor);
  // Learning rate factor of a phase at a step.
  double factor(std::size_t phase, std::int64_t step) const;
  Batch next_batch();
  void wait_for_copy(const Batch& batch) const;
  bool first() const { return ranks_ == nullptr || ranks_->first(); }
  int stop_wanted() const;  // the signal that any rank has received, or 0
  void evaluate();
  void validate();
  void validate_batch(const Batch& batch, Logs& sums) const;
  void sample(const Batch& batch, bool average);
  void save_weights();
  bool checkpoint_due() const;
  std::int64_t checkpoint_number() const;
  void checkpoint();
  void add_state(Dict& state, std::size_t phase) const;
  Value state(const std::vector<torch::Tensor>& generators) const;
  std::vector<torch::Tensor> generator_states() const;
  void restore(const Value& state, const std::string& source);
  void report_progress(bool last);

  Stage& stage_;
  Loader& train_;
  Loader* valid_;
  const RunFolder& folder_;
  SchedulerOptions options_;
  std::vector<std::unique_ptr<Tracker>> trackers_;
  std::vector<Phase> phases_;
  std::vector<Schedule> schedules_;  // one per phase
  std::unique_ptr<Ema> ema_;
  RankGroup* ranks_;
  std::vector<std::unique_ptr<GradientSync>> syncs_;  // one per phase; empty without ranks
  std::unique_ptr<LossScaler> scaler_;
  torch::Device device_;
  bool validates_ = false;  // at least one rank has validation data

  std::int64_t step_ = 0;
  std::int64_t checkpointed_ = -1;  // step of the last checkpoint
  Position position_;               // of the training loader after the last completed step
  bool changed_ = false;            // an optimizer has stepped since then
  bool evaluation_due_ = false;     // after the last step; after a signal the resumed run does it
  Logs logs_;
  std::int64_t bad_steps_ = 0, bad_in_a_row_ = 0;
  bool bad_this_step_ = false;

  std::function<void(const StepReport&)> step_callback_;
  StepMeter meter_;
  std::int64_t items_ = 0;        // in this step, over all ranks
  double optimizer_seconds_ = 0;  // in this step
  std::chrono::steady_clock::time_point logged_at_;
};

}  // namespace millrace
