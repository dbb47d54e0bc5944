// The one loop of all trainers: steps, validation, samples, checkpoints, the moving average, the
// schedule, trackers and signals. What a step means is the Stage's.
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
  std::int64_t save_results_every = 100;  // samples and validation; 0: never
  std::int64_t save_model_every = 1000;   // the weights alone; 0: never
  std::int64_t checkpoint_every = 0;      // everything; 0: as save_model_every
  CheckpointNumbers checkpoint_numbers = CheckpointNumbers::steps_done;
  int keep = 3;                    // how many checkpoints stay; 0: all
  std::int64_t valid_batches = 0;  // the first so many of the validation set; 0: all
  bool use_ema = true;
  EmaOptions ema{};
  ScheduleOptions schedule{};
  Precision precision = Precision::full;
  LossScalerOptions scaler{};       // fp16 alone has one
  std::int64_t max_bad_steps = 10;  // so many steps in a row without a finite loss end the run
  // The others that train the same model; null: this process is alone. Loaders have this rank's
  // share: the training loader by `rank`, `world` and `group`, the validation loader as a part of
  // the set (or null, where the part is empty). Rank 0 alone writes.
  RankGroup* ranks = nullptr;
  Accelerator* accelerator = nullptr;  // null: on the CPU
};

// Where a run stands.
struct StepReport {
  std::int64_t step = 0;     // how many are done
  Logs losses{};             // of the last one, each phase's
  StepMeter::Rates rates{};  // of the last seconds
  double padding = 0;        // the share of padding in the batches so far
};

class Scheduler {
 public:
  // All must outlive the scheduler. Without `valid` there is neither validation nor samples.
  Scheduler(Stage& stage, Loader& train, Loader* valid, const RunFolder& folder,
            SchedulerOptions options, std::vector<std::unique_ptr<Tracker>> trackers = {});
  ~Scheduler();

  // The step that the folder's newest checkpoint stands at, or 0. Trackers are made after this.
  std::int64_t resume();
  void add_tracker(std::unique_ptr<Tracker> tracker);
  // Called after every step, e.g. to draw a bar; without it a line is logged every ten seconds.
  void on_step(std::function<void(const StepReport&)> told) { told_ = std::move(told); }

  // Until num_train_steps, or a signal. Returns 0, or 128 + the signal. The last step is always
  // checkpointed.
  int run();

  std::int64_t step() const { return step_; }
  const Logs& last_logs() const { return logs_; }
  StepMeter::Rates rates() const { return meter_.whole(); }
  // How many steps were skipped because a loss or a gradient was not finite.
  std::int64_t bad_steps() const { return bad_steps_; }

 private:
  struct Interrupted {};  // thrown out of validation when a signal came

  void train_step();
  void run_phase(const Phase& phase, std::size_t number);
  void step_optimizer(const PhaseOptimizer& one, const Phase& phase, double factor);
  // The learning rate's factor of a phase in a step.
  double factor(std::size_t phase, std::int64_t step) const;
  Batch next_batch();
  void use(const Batch& batch) const;
  bool first() const { return ranks_ == nullptr || ranks_->first(); }
  int stop_wanted() const;  // the signal that came to any rank, or 0
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
  void tell(bool last);

  Stage& stage_;
  Loader& train_;
  Loader* valid_;
  const RunFolder& folder_;
  SchedulerOptions options_;
  std::vector<std::unique_ptr<Tracker>> trackers_;
  std::vector<Phase> phases_;
  std::vector<Schedule> schedules_;  // one a phase
  std::unique_ptr<Ema> ema_;
  RankGroup* ranks_;
  std::vector<std::unique_ptr<GradientSync>> syncs_;  // one a phase, if there are ranks
  std::unique_ptr<LossScaler> scaler_;
  torch::Device device_;
  bool validates_ = false;  // some rank has a share of the validation set

  std::int64_t step_ = 0;
  std::int64_t checkpointed_ = -1;  // the step of the last checkpoint
  Position position_;               // of the loader, after the last whole step
  bool changed_ = false;            // an optimizer moved since then
  bool evaluation_due_ = false;     // of the last step; a signal may put it off to the resumed run
  Logs logs_;
  std::int64_t bad_steps_ = 0, bad_in_a_row_ = 0;
  bool bad_this_step_ = false;

  std::function<void(const StepReport&)> told_;
  StepMeter meter_;
  std::int64_t items_ = 0;        // of this step
  double optimizer_seconds_ = 0;  // likewise
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace millrace
