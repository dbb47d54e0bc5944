#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/loop/scheduler.h>
#include <millrace/training/loop/stop_signal.h>
#include <millrace/training/models/module/module_tensors.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/StringUtil.h>

namespace millrace {

namespace {

// Time a step has to finish after a signal; then the loaders are cancelled.
constexpr std::chrono::seconds stop_timeout{5};
constexpr std::chrono::seconds log_interval{10};

double gradient_norm(const Optimizer& optimizer) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& p : optimizer.parameters()) {
    if (p.grad().defined()) gradients.push_back(p.grad());
  }
  if (gradients.empty()) return 0;
  return torch::stack(at::_foreach_norm(gradients)).norm().item<double>();
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void add(Logs& logs, const std::string& name, double value) {
  for (auto& [key, sum] : logs) {
    if (key == name) {
      sum += value;
      return;
    }
  }
  logs.emplace_back(name, value);
}

}  // namespace

Scheduler::Scheduler(Stage& stage, Loader& train, Loader* valid, const RunFolder& folder,
                     SchedulerOptions options, std::vector<std::unique_ptr<Tracker>> trackers)
    : stage_(stage),
      train_(train),
      valid_(valid),
      folder_(folder),
      options_(std::move(options)),
      trackers_(std::move(trackers)),
      phases_(stage.phases()),
      ranks_(options_.ranks),
      device_(options_.accelerator ? options_.accelerator->device() : torch::Device(torch::kCPU)),
      validates_(valid != nullptr),
      position_(train.position()) {
  if (options_.num_train_steps < 1 || options_.grad_accum_every < 1) {
    throw Error(c10::str("a run needs at least 1 step and 1 micro-batch, not ",
                         options_.num_train_steps, " and ", options_.grad_accum_every))
        .kind(ErrorKind::usage);
  }
  if (options_.checkpoint_every == 0) options_.checkpoint_every = options_.save_model_every;
  for (const Phase& phase : phases_) {
    ScheduleOptions own = options_.schedule;
    own.steps = std::max<std::int64_t>(own.steps - phase.first_step, own.steps > 0 ? 1 : 0);
    schedules_.emplace_back(own);
  }
  if (options_.precision == Precision::fp16) {
    scaler_ = std::make_unique<LossScaler>(options_.scaler, device_);
  }
  if (ranks_ != nullptr) {
    ranks_->broadcast(state_tensors(stage_.model()));
    stage_.join(*ranks_);
    // The weights are equal now. From here on each rank has its own data and its own random
    // numbers.
    const std::uint64_t seed = at::detail::getDefaultCPUGenerator().current_seed();
    if (!first()) torch::manual_seed(mix(seed, static_cast<std::uint64_t>(ranks_->rank())));
    validates_ = ranks_->largest(validates_ ? 1 : 0) != 0;
    for (const Phase& phase : phases_) {
      std::vector<torch::Tensor> all;
      for (const PhaseOptimizer& one : phase.optimizers) {
        std::ranges::copy(one.optimizer->parameters(), std::back_inserter(all));
      }
      syncs_.push_back(std::make_unique<GradientSync>(*ranks_, all));
    }
  }
  if (options_.use_ema) {
    NamedTensors online = state_tensors(stage_.model()), average = state_tensors(stage_.average());
    copy_tensors(online, average, "the model");
    ema_ = std::make_unique<Ema>(std::move(online), std::move(average), options_.ema);
  }
}

Scheduler::~Scheduler() = default;

void Scheduler::add_tracker(std::unique_ptr<Tracker> tracker) {
  trackers_.push_back(std::move(tracker));
}

Batch Scheduler::next_batch() {
  // At the end of an epoch next() returns nothing once; the call after that starts the next epoch.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (std::optional<Batch> batch = train_.next()) return *std::move(batch);
  }
  throw Error("the training set has no batches").kind(ErrorKind::usage);
}

// Makes the GPU's stream wait for the copy of the batch, without blocking the host.
void Scheduler::wait_for_copy(const Batch& batch) const {
  if (options_.accelerator != nullptr) batch.wait_on(options_.accelerator->stream());
}

int Scheduler::stop_wanted() const {
  const int here = StopSignal::received();
  return ranks_ == nullptr ? here : static_cast<int>(ranks_->largest(here));
}

void Scheduler::run_phase(const Phase& phase, std::size_t number) {
  const std::int64_t world = ranks_ == nullptr ? 1 : ranks_->world();
  const double share = 1.0 / static_cast<double>(options_.grad_accum_every);
  // Turns the sum of gradients over all micro-batches of all ranks into their mean.
  const double scale = 1.0 / static_cast<double>(options_.grad_accum_every * world) *
                       (scaler_ ? scaler_->scale() : 1);
  GradientSync* sync = ranks_ == nullptr ? nullptr : syncs_[number].get();
  Logs logs;
  for (const PhaseOptimizer& one : phase.optimizers) one.optimizer->zero_grad();
  for (std::int64_t i = 0; i < options_.grad_accum_every; ++i) {
    const Batch batch = next_batch();
    wait_for_copy(batch);
    items_ += batch.size() * world;
    if (number == 0 && batch.padding()) add(logs, "padding", *batch.padding() * share);
    if (sync != nullptr && i + 1 == options_.grad_accum_every) sync->begin();
    Autocast autocast(options_.precision, device_.type());
    for (const auto& [name, value] :
         stage_.backward(batch, {.step = step_, .phase = number, .scale = scale})) {
      add(logs, name, value * share);
    }
  }
  if (sync != nullptr) {
    sync->finish();
    ranks_->average(logs);
  }
  for (const auto& [name, value] : logs) add(logs_, name, value);
  const auto begin = std::chrono::steady_clock::now();
  for (const PhaseOptimizer& one : phase.optimizers) {
    step_optimizer(one, phase, factor(number, step_));
    one.optimizer->zero_grad();
  }
  optimizer_seconds_ += seconds_since(begin);
  if (!scaler_) return;
  scaler_->update();
  add(logs_, phase.optimizers.front().state + "_loss_scale", scaler_->scale());
}

double Scheduler::factor(std::size_t phase, std::int64_t step) const {
  return schedules_[phase].factor(std::max<std::int64_t>(step - phases_[phase].first_step, 0));
}

// Gradients and losses are already reduced over the ranks, so all ranks step or all skip.
void Scheduler::step_optimizer(const PhaseOptimizer& one, const Phase& phase, double factor) {
  Optimizer& optimizer = *one.optimizer;
  const bool unscaled = !scaler_ || scaler_->unscale(optimizer.parameters());
  const double norm =
      one.max_grad_norm > 0 ? optimizer.clip(one.max_grad_norm) : gradient_norm(optimizer);
  add(logs_, one.state + "_grad_norm", norm);
  const bool finite_loss = std::isfinite(value_of(logs_, phase.loss));
  if (unscaled && std::isfinite(norm) && finite_loss) {
    changed_ = true;
    optimizer.step(factor);
  } else if (!scaler_ || !finite_loss || scaler_->scale() < 1) {
    // With a loss scaler, overflowing gradients are expected until its scale has dropped below 1.
    bad_this_step_ = true;
  }
}

void Scheduler::train_step() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const double waited = train_.stats().consumer_wait_seconds;
  const double backward = stage_.backward_seconds();
  stage_.model().train();
  logs_.clear();
  items_ = 0;
  optimizer_seconds_ = 0;
  bad_this_step_ = false;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    if (step_ >= phases_[i].first_step) run_phase(phases_[i], i);
  }
  const auto updating = Clock::now();
  if (ema_) ema_->update();
  optimizer_seconds_ += seconds_since(updating);
  add(logs_, "lr", phases_.front().optimizers.front().optimizer->lr() * factor(0, step_));
  meter_.add({.seconds = seconds_since(begin),
              .items = items_,
              .wait_seconds = train_.stats().consumer_wait_seconds - waited,
              .backward_seconds = stage_.backward_seconds() - backward,
              .optimizer_seconds = optimizer_seconds_});
  bad_in_a_row_ = bad_this_step_ ? bad_in_a_row_ + 1 : 0;
  if (!bad_this_step_) return;
  ++bad_steps_;
  add(logs_, "skipped_steps", static_cast<double>(bad_steps_));
  log(LogLevel::warning,
      c10::str("step ", step_, ": a loss or a gradient is not finite; the step is skipped"));
  if (bad_in_a_row_ >= options_.max_bad_steps) {
    throw Error(c10::str("no finite loss in ", bad_in_a_row_, " steps in a row; the run ends"))
        .hint("Lower the learning rate, or clip the gradients");
  }
}

int Scheduler::run() {
  StopSignal stop(
      [this] {
        train_.cancel();
        if (valid_ != nullptr) valid_->cancel();
      },
      stop_timeout);
  logged_at_ = std::chrono::steady_clock::now();
  bool consistent = true;  // the weights are those after a completed step
  try {
    if (evaluation_due_ && validates_) {
      evaluate();
      checkpointed_ = -1;  // the checkpoint on disk still says that an evaluation is due
    }
    while (step_ < options_.num_train_steps && stop_wanted() == 0) {
      train_step();
      const std::int64_t done = step_++;
      position_ = train_.position();
      changed_ = false;
      for (auto& tracker : trackers_) tracker->scalars(done, logs_);
      const bool last = step_ == options_.num_train_steps;
      auto due = [&](std::int64_t every) { return every > 0 && done % every == 0; };
      if (first() && (due(options_.save_model_every) || last)) save_weights();
      evaluation_due_ = validates_ && options_.save_results_every > 0 &&
                        (last || due(options_.save_results_every));
      if (evaluation_due_) evaluate();
      if (checkpoint_due()) checkpoint();
      report_progress(last);
    }
  } catch (const Interrupted&) {
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled || StopSignal::received() == 0) throw;
    consistent = !changed_;
    if (ranks_ != nullptr) {  // the other ranks wait inside a step that this rank cannot finish
      ranks_->fail(c10::str("signal ", StopSignal::received(), " stopped it during a step"));
      log(LogLevel::warning, "the step was not finished; --resume uses the last checkpoint");
      return 128 + StopSignal::received();
    }
  }
  const int signal = stop_wanted();
  if (consistent && checkpointed_ != step_) checkpoint();
  for (auto& tracker : trackers_) tracker->flush();
  if (ranks_ != nullptr) ranks_->barrier();  // if rank 0 failed to write, every rank fails
  if (signal == 0) return 0;
  log(LogLevel::info,
      c10::str("stopped by signal ", signal, " after ", step_, " steps",
               consistent ? "; continue with --resume"
                          : "; the step was not finished, --resume uses the last checkpoint"));
  return 128 + signal;
}

void Scheduler::report_progress(bool last) {
  if (!first()) return;
  StepReport report{.step = step_, .losses = {}, .rates = meter_.recent()};
  report.padding = train_.stats().padding_share();
  for (const Phase& phase : phases_) {
    if (step_ <= phase.first_step) continue;
    report.losses.emplace_back(phase.loss, value_of(logs_, phase.loss));
  }
  if (step_callback_) return step_callback_(report);
  const auto now = std::chrono::steady_clock::now();
  if (!last && now - logged_at_ < log_interval) return;
  logged_at_ = now;
  std::string line = c10::str("step ", step_, "/", options_.num_train_steps);
  for (const auto& [name, value] : report.losses) line.append(c10::str("  ", name, " ", value));
  const StepMeter::Rates& rates = report.rates;
  line.append(c10::str(
      "  ", rates.items_per_second, " items/s  data ", 100 * rates.data_wait, " %  ",
      static_cast<double>(options_.num_train_steps - step_) / rates.steps_per_second, " s left"));
  if (report.padding > 0) line.append(c10::str("  padding ", 100 * report.padding, " %"));
  log(LogLevel::info, line);
}

}  // namespace millrace
