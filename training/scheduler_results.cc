// What a run leaves behind: validation, samples, weights and checkpoints.
#include <millrace/decoders/image_write.h>
#include <millrace/pipeline/error.h>
#include <millrace/pipeline/log.h>
#include <millrace/training/atomic_file.h>
#include <millrace/training/checkpoint.h>
#include <millrace/training/models/module_tensors.h>
#include <millrace/training/scheduler.h>
#include <millrace/training/stop_signal.h>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {

namespace {

constexpr const char* version = "0.1.0";

// Eval mode as long as it lives, for both models.
class Evaluation {
 public:
  explicit Evaluation(Stage& stage) : stage_(stage) {
    stage_.model().eval();
    stage_.average().eval();
  }
  ~Evaluation() { stage_.model().train(); }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Stage& stage_;
  torch::NoGradGuard no_grad_;
};

}  // namespace

void Scheduler::evaluate() {
  const Evaluation evaluation(stage_);
  validate();
}

// Both models see the same batches: the whole validation set in its order, or the first of it.
void Scheduler::validate() {
  Position start = valid_->position();
  start.epoch = 0;
  start.next = 0;
  valid_->seek(start);
  Logs sums;
  std::int64_t rows = 0, batches = 0;
  while (std::optional<Batch> batch = valid_->next()) {
    if (StopSignal::received() != 0) throw Interrupted{};
    if (batches == 0) {
      if (ema_) sample(*batch, true);
      sample(*batch, false);
    }
    auto add = [&](bool average, const char* prefix) {
      for (const auto& [name, value] : stage_.validate(*batch, average)) {
        const std::string key = prefix + name;
        const double weighed = value * static_cast<double>(batch->size());
        bool there = false;
        for (auto& [other, sum] : sums) {
          if (other == key) sum += weighed, there = true;
        }
        if (!there) sums.emplace_back(key, weighed);
      }
    };
    add(false, "valid_");
    if (ema_) add(true, "valid_ema_");
    rows += batch->size();
    if (++batches == options_.valid_batches) break;
  }
  if (rows == 0) return;
  for (auto& [name, sum] : sums) sum /= static_cast<double>(rows);
  for (auto& tracker : trackers_) tracker->scalars(step_ - 1, sums);
  std::string line = c10::str("step ", step_ - 1, ": ", rows, " validation samples");
  for (const auto& [name, value] : sums) line.append(c10::str("  ", name, " ", value));
  log(LogLevel::info, line);
}

void Scheduler::sample(const Batch& batch, bool average) {
  for (const Picture& picture : stage_.sample(batch, step_ - 1, average)) {
    std::vector<std::byte> png;
    if (Status status = encode_png(picture.pixels, {}, png); !status.ok()) throw status.error();
    write_atomically(folder_ / (picture.name + ".png"),
                     {reinterpret_cast<const char*>(png.data()), png.size()});
    for (auto& tracker : trackers_) {
      tracker->picture(step_ - 1, average ? "reconstructions_ema" : "reconstructions",
                       picture.pixels);
    }
  }
}

void Scheduler::save_weights() {
  const Value ema = ema_ ? ema_->state() : Value();
  for (const auto& [name, value] : stage_.weights(step_ - 1, ema)) {
    write_checkpoint(folder_ / name, value);
  }
}

Value Scheduler::state() const {
  const double factor = schedule_.factor(std::max<std::int64_t>(step_ - 1, 0));
  Dict state{{"model", to_value(state_tensors(stage_.model()))}};
  for (const Phase& phase : phases_) state.set(phase.state, phase.optimizer->state(factor));
  if (ema_) state.set("ema", ema_->state());
  state.set("step", step_);
  state.set("bad_steps", bad_steps_);
  state.set("loader", Dict{{"seed", static_cast<std::int64_t>(position_.seed)},
                           {"epoch", position_.epoch},
                           {"next", position_.next}});
  auto generator = at::detail::getDefaultCPUGenerator();
  state.set("rng", Dict{{"torch", generator.get_state()}});
  state.set("scaler", Value());
  state.set("config", stage_.config());
  state.set("version", version);
  return state;
}

void Scheduler::checkpoint() {
  folder_.save(step_, state(), options_.keep);
  checkpointed_ = step_;
  for (auto& tracker : trackers_) tracker->flush();
}

std::int64_t Scheduler::resume() {
  const auto found = folder_.newest();
  if (!found) return 0;
  const auto& [path, state] = *found;
  const std::string source = path.string();
  copy_tensors(state["model"], state_tensors(stage_.model()), source);
  for (const Phase& phase : phases_) phase.optimizer->load(state[phase.state], source);
  if (ema_ && state.as_dict().contains("ema")) ema_->load(state["ema"], source);
  step_ = state["step"].as_int();
  bad_steps_ = state["bad_steps"].as_int();
  const Value& loader = state["loader"];
  position_ = {.seed = static_cast<std::uint64_t>(loader["seed"].as_int()),
               .epoch = loader["epoch"].as_int(),
               .next = loader["next"].as_int()};
  train_.seek(position_);
  auto generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(state["rng"]["torch"].as_tensor());
  checkpointed_ = step_;
  if (state["version"].as_string() != version) {
    log(LogLevel::warning, c10::str(source, ": was written by version ",
                                    state["version"].as_string(), ", this is ", version));
  }
  log(LogLevel::info, c10::str("going on at step ", step_, " from ", source));
  return step_;
}

}  // namespace millrace
