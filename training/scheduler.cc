#include <millrace/pipeline/error.h>
#include <millrace/pipeline/log.h>
#include <millrace/training/checkpoint.h>
#include <millrace/training/models/module_tensors.h>
#include <millrace/training/scheduler.h>
#include <millrace/training/stop_signal.h>

#include <cmath>

#include <ATen/autocast_mode.h>
#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {

namespace {

// How long a step may go on after a signal before its loader is told to give up.
constexpr std::chrono::seconds patience{5};

// Forward passes in bfloat16 as long as it lives.
class Autocast {
 public:
  explicit Autocast(bool on) : on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
};

double gradient_norm(const Optimizer& optimizer) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& p : optimizer.parameters()) {
    if (p.grad().defined()) gradients.push_back(p.grad());
  }
  if (gradients.empty()) return 0;
  return torch::stack(at::_foreach_norm(gradients)).norm().item<double>();
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
      schedule_(options_.schedule),
      phases_(stage.phases()),
      position_(train.position()) {
  if (options_.num_train_steps < 1 || options_.grad_accum_every < 1) {
    throw Error(c10::str("a run needs at least 1 step and 1 micro-batch, not ",
                         options_.num_train_steps, " and ", options_.grad_accum_every))
        .kind(ErrorKind::usage);
  }
  if (options_.checkpoint_every == 0) options_.checkpoint_every = options_.save_model_every;
  if (options_.use_ema) {
    NamedTensors online = state_tensors(stage_.model()), average = state_tensors(stage_.average());
    copy_tensors(to_value(online), average, "the model");
    ema_ = std::make_unique<Ema>(std::move(online), std::move(average), options_.ema);
  }
}

Scheduler::~Scheduler() = default;

void Scheduler::add_tracker(std::unique_ptr<Tracker> tracker) {
  trackers_.push_back(std::move(tracker));
}

Batch Scheduler::next_batch() {
  // An epoch's end is no batch; the call after it begins the next one.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (std::optional<Batch> batch = train_.next()) return *std::move(batch);
  }
  throw Error("the training set gives no batches").kind(ErrorKind::usage);
}

void Scheduler::run_phase(const Phase& phase, std::size_t number) {
  const double scale = 1.0 / static_cast<double>(options_.grad_accum_every);
  phase.optimizer->zero_grad();
  for (std::int64_t i = 0; i < options_.grad_accum_every; ++i) {
    const Batch batch = next_batch();
    items_ += batch.size();
    Autocast autocast(options_.bf16);
    for (const auto& [name, value] :
         stage_.backward(batch, {.step = step_, .phase = number, .scale = scale})) {
      add(logs_, name, value * scale);
    }
  }
  const double norm = phase.max_grad_norm > 0 ? phase.optimizer->clip(phase.max_grad_norm)
                                              : gradient_norm(*phase.optimizer);
  add(logs_, phase.state + "_grad_norm", norm);
  if (std::isfinite(norm) && std::isfinite(value_of(logs_, phase.loss))) {
    changed_ = true;
    phase.optimizer->step(schedule_.factor(step_));
  } else {
    bad_this_step_ = true;
  }
  phase.optimizer->zero_grad();
}

void Scheduler::train_step() {
  stage_.model().train();
  logs_.clear();
  bad_this_step_ = false;
  for (std::size_t i = 0; i < phases_.size(); ++i) run_phase(phases_[i], i);
  if (ema_) ema_->update();
  add(logs_, "lr", phases_.front().optimizer->lr() * schedule_.factor(step_));
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
      patience);
  shown_ = std::chrono::steady_clock::now();
  shown_step_ = step_;
  bool whole = true;
  try {
    while (step_ < options_.num_train_steps && StopSignal::received() == 0) {
      train_step();
      const std::int64_t done = step_++;
      position_ = train_.position();
      changed_ = false;
      for (auto& tracker : trackers_) tracker->scalars(done, logs_);
      const bool last = step_ == options_.num_train_steps;
      auto due = [&](std::int64_t every) { return every > 0 && done % every == 0; };
      if (due(options_.save_model_every) || last) save_weights();
      if (valid_ != nullptr &&
          (due(options_.save_results_every) || (last && options_.save_results_every > 0)))
        evaluate();
      if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0) checkpoint();
      show_progress(last);
    }
  } catch (const Interrupted&) {
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled || StopSignal::received() == 0) throw;
    whole = !changed_;
  }
  const int signal = StopSignal::received();
  if (whole && checkpointed_ != step_) checkpoint();
  for (auto& tracker : trackers_) tracker->flush();
  if (signal == 0) return 0;
  log(LogLevel::info,
      c10::str("stopped by signal ", signal, " after ", step_, " steps",
               whole ? "; go on with --resume"
                     : "; the step could not be ended, the last checkpoint stands"));
  return 128 + signal;
}

void Scheduler::show_progress(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - shown_ < options_.progress_every) return;
  const double seconds = std::max(std::chrono::duration<double>(time - shown_).count(), 1e-9);
  const double wait = train_.stats().consumer_wait_seconds;
  const double per_second = static_cast<double>(step_ - shown_step_) / seconds;
  std::string line = c10::str("step ", step_, "/", options_.num_train_steps);
  for (const Phase& phase : phases_) {
    line.append(c10::str("  ", phase.loss, " ", value_of(logs_, phase.loss)));
  }
  char rates[128];
  const double left =
      static_cast<double>(options_.num_train_steps - step_) / std::max(per_second, 1e-9);
  std::snprintf(rates, sizeof rates, "  %.1f items/s  data %.1f %%  %.0f s left",
                static_cast<double>(items_) / seconds, 100 * (wait - shown_wait_) / seconds, left);
  log(LogLevel::info, line + rates);
  shown_ = time;
  shown_step_ = step_;
  shown_wait_ = wait;
  items_ = 0;
}

}  // namespace millrace
