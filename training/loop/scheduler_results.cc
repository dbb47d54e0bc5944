// The part of Scheduler that writes and restores results: validation, samples, weights,
// checkpoints.
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/loop/scheduler.h>
#include <millrace/training/loop/stop_signal.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/optim/lr_schedule_state.h>
#include <millrace/version.h>

#include <sstream>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/StringUtil.h>

namespace millrace {

namespace {

// Puts the model and its EMA into eval mode and turns gradients off while it lives.
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

// A rank without validation data does not know the names. Rank 0 always has data, so it sends them.
void sum_over_ranks(RankGroup& ranks, Logs& sums) {
  std::string names;
  for (const auto& [name, sum] : sums) names.append(name).append("\n");
  std::istringstream all(ranks.broadcast(names));
  Logs mine;
  for (std::string name; std::getline(all, name);) mine.emplace_back(name, value_of(sums, name));
  ranks.average(mine);
  for (auto& [name, sum] : mine) sum *= ranks.world();
  sums = std::move(mine);
}

std::string_view text_of(const auto& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::uint8_t> gif_of(const Picture& clip) {
  const Shape& shape = clip.pixels.shape();
  const GifFrames frames{.frames = shape[0],
                         .height = static_cast<int>(shape[1]),
                         .width = static_cast<int>(shape[2]),
                         .channels = static_cast<int>(shape[3])};
  std::vector<std::uint8_t> file;
  const Status status = encode_gif(clip.pixels.as<const std::uint8_t>(), frames,
                                   {.frames_per_second = clip.frames_per_second}, file);
  if (!status.ok()) throw status.error();
  return file;
}

}  // namespace

void Scheduler::evaluate() {
  const Evaluation evaluation(stage_);
  validate();
  evaluation_due_ = false;
}

// The model and its EMA see the same batches, from the start of the validation set. Ranks validate
// their own parts in lockstep, one batch per round, so that a signal stops all in the same round.
void Scheduler::validate() {
  if (valid_ != nullptr) {
    Position start = valid_->position();
    start.epoch = start.next = start.part = 0;
    valid_->seek(start);
  }
  stage_.begin_validation();
  Logs sums{{"rows", 0}};
  std::int64_t rounds = valid_ != nullptr ? valid_->batches_per_epoch() : 0;
  if (options_.valid_batches > 0) rounds = std::min(rounds, options_.valid_batches);
  const std::int64_t mine = rounds;
  if (ranks_ != nullptr) rounds = ranks_->largest(rounds);
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (stop_wanted() != 0) throw Interrupted{};
    if (round >= mine) continue;
    const std::optional<Batch> batch = valid_->next();
    if (!batch) continue;
    wait_for_copy(*batch);
    if (round == 0 && first()) {
      if (ema_) sample(*batch, true);
      sample(*batch, false);
    }
    validate_batch(*batch, sums);
  }
  if (ranks_ != nullptr) sum_over_ranks(*ranks_, sums);
  Logs whole;
  for (const auto& [name, value] : stage_.end_validation(false)) {
    whole.emplace_back("valid_" + name, value);
  }
  if (ema_) {
    for (const auto& [name, value] : stage_.end_validation(true)) {
      whole.emplace_back("valid_ema_" + name, value);
    }
  }
  const double rows = sums.front().second;
  sums.erase(sums.begin());
  if (rows == 0 || !first()) return;
  for (auto& [name, sum] : sums) sum /= rows;
  sums.insert(sums.end(), whole.begin(), whole.end());
  for (auto& tracker : trackers_) tracker->scalars(step_ - 1, sums);
  std::string line =
      c10::str("step ", step_ - 1, ": ", static_cast<std::int64_t>(rows), " validation samples");
  for (const auto& [name, value] : sums) line.append(c10::str("  ", name, " ", value));
  log(LogLevel::info, line);
}

void Scheduler::validate_batch(const Batch& batch, Logs& sums) const {
  const auto rows = static_cast<double>(batch.size());
  auto add = [&](const std::string& key, double value) {
    for (auto& [other, sum] : sums) {
      if (other == key) {
        sum += value;
        return;
      }
    }
    sums.emplace_back(key, value);
  };
  add("rows", rows);
  for (const auto& [name, value] : stage_.validate(batch, false)) {
    add("valid_" + name, value * rows);
  }
  if (!ema_) return;
  for (const auto& [name, value] : stage_.validate(batch, true)) {
    add("valid_ema_" + name, value * rows);
  }
}

void Scheduler::sample(const Batch& batch, bool average) {
  const Samples samples = stage_.sample(batch, step_ - 1, average);
  for (const std::string& line : samples.lines) log(LogLevel::info, line);
  for (const ResultFile& file : samples.files) write_durably(folder_ / file.name, file.content);
  for (const Picture& picture : samples.pictures) {
    if (picture.pixels.shape().rank() == 4) {
      write_durably(folder_ / (picture.name + ".gif"), text_of(gif_of(picture)));
      continue;
    }
    std::vector<std::byte> png;
    if (Status status = encode_png(picture.pixels, {}, png); !status.ok()) throw status.error();
    write_durably(folder_ / (picture.name + ".png"), text_of(png));
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

// RNG states of this rank as bytes: the CPU's, then the GPU's if it has one.
std::vector<torch::Tensor> Scheduler::generator_states() const {
  std::vector<torch::Tensor> states{at::detail::getDefaultCPUGenerator().get_state()};
  if (device_.is_cuda()) {
    states.push_back(at::globalContext().defaultGenerator(device_).get_state());
  }
  return states;
}

// Saves the optimizers of a phase. Python trainers with a saved warm-up take their next step with
// the learning rate in the loaded state, so it is that of the next step. Other trainers only
// display it, so it is that of the last step.
void Scheduler::add_state(Dict& state, std::size_t number) const {
  const Phase& phase = phases_[number];
  const std::int64_t steps = std::max<std::int64_t>(step_ - phase.first_step, 0);
  for (const PhaseOptimizer& one : phase.optimizers) {
    const bool next = !one.warmup.empty();
    Dict own;
    Dict& place = one.group.empty() ? state : own;
    place.set(one.state, one.optimizer->state(factor(number, next ? step_ : step_ - 1)));
    if (next) place.set(one.warmup, warmup_state(schedules_[number], *one.optimizer, steps));
    if (!one.schedule.empty()) {
      place.set(one.schedule, schedule_state(schedules_[number], *one.optimizer, steps));
    }
    if (!one.group.empty()) state.set(one.group, std::move(own));
  }
}

Value Scheduler::state(const std::vector<torch::Tensor>& generators) const {
  Dict state{{"model", to_value(state_tensors(stage_.model()))}};
  for (std::size_t i = 0; i < phases_.size(); ++i) add_state(state, i);
  const AverageState average = stage_.average_state();
  if (ema_) state.set(average.name, ema_->state(average.with_online_model));
  state.set("step", step_);
  state.set("bad_steps", bad_steps_);
  state.set("evaluation_due", evaluation_due_);
  state.set("loader", Dict{{"seed", static_cast<std::int64_t>(position_.seed)},
                           {"epoch", position_.epoch},
                           {"next", position_.next},
                           {"bucket", position_.bucket},
                           {"window", position_.window}});
  const std::size_t world = ranks_ == nullptr ? 1 : static_cast<std::size_t>(ranks_->world());
  Dict rng{{"torch", to_value(generators[0])}};
  if (generators.size() > world) rng.set("cuda", to_value(generators[world]));
  List others;  // RNG states of rank 1, 2, ...
  for (std::size_t rank = 1; rank < world; ++rank) {
    Dict one{{"torch", to_value(generators[rank])}};
    if (generators.size() > world) one.set("cuda", to_value(generators[world + rank]));
    others.items.emplace_back(std::move(one));
  }
  rng.set("ranks", std::move(others));
  state.set("rng", std::move(rng));
  state.set("scaler", scaler_ ? scaler_->state() : Value());
  state.set("config", stage_.config());
  state.set("version", version);
  return state;
}

bool Scheduler::checkpoint_due() const {
  const std::int64_t every = options_.checkpoint_every;
  const bool counts = options_.checkpoint_numbers == CheckpointNumbers::checkpoints_after_first;
  return every > 0 && (counts ? step_ - 1 : step_) % every == 0;
}

std::int64_t Scheduler::checkpoint_number() const {
  const std::int64_t every = std::max<std::int64_t>(options_.checkpoint_every, 1);
  switch (options_.checkpoint_numbers) {
    case CheckpointNumbers::checkpoints:
      return (step_ + every - 1) / every;
    case CheckpointNumbers::checkpoints_after_first:
      return (std::max<std::int64_t>(step_ - 1, 0) + every - 1) / every;
    case CheckpointNumbers::steps_done:
      break;
  }
  return step_;
}

void Scheduler::checkpoint() {
  std::vector<torch::Tensor> generators = generator_states();
  if (ranks_ != nullptr) {
    std::vector<torch::Tensor> all;
    for (const torch::Tensor& mine : generators) {
      for (torch::Tensor& one : ranks_->gather(mine)) all.push_back(std::move(one));
    }
    generators = std::move(all);
  }
  if (first()) folder_.save(checkpoint_number(), state(generators), options_.keep);
  checkpointed_ = step_;
  for (auto& tracker : trackers_) tracker->flush();
}

// Rank 0 chooses the checkpoint; every rank reads it, so the folder must be on a shared disk.
std::int64_t Scheduler::resume() {
  std::optional<std::pair<std::filesystem::path, Value>> found;
  if (first()) found = folder_.newest();
  if (ranks_ != nullptr) {
    const std::string name = ranks_->broadcast(found ? found->first.filename().string() : "");
    const std::filesystem::path path = folder_.checkpoints_path() / name;
    if (!first() && !name.empty()) found.emplace(path, read_checkpoint(path));
  }
  if (!found) return 0;
  restore(found->second, found->first.string());
  if (first()) {
    log(LogLevel::info, c10::str("resuming at step ", step_, " from ", found->first.string()));
  }
  return step_;
}

void Scheduler::restore(const Value& state, const std::string& source) {
  copy_tensors(state["model"], state_tensors(stage_.model()), source);
  for (const Phase& phase : phases_) {
    for (const PhaseOptimizer& one : phase.optimizers) {
      const Value& place = one.group.empty() ? state : state[one.group];
      one.optimizer->load(place[one.state], source);
    }
  }
  const std::string average = stage_.average_state().name;
  if (ema_ && state.as_dict().contains(average)) ema_->load(state[average], source);
  if (scaler_ && !state["scaler"].is_none()) scaler_->load(state["scaler"]);
  step_ = state["step"].as_int();
  bad_steps_ = state["bad_steps"].as_int();
  const Value* due = state.as_dict().find("evaluation_due");
  evaluation_due_ = due != nullptr && due->as_bool();
  const Value& loader = state["loader"];
  position_ = {.seed = static_cast<std::uint64_t>(loader["seed"].as_int()),
               .epoch = loader["epoch"].as_int(),
               .next = loader["next"].as_int()};
  if (loader.as_dict().contains("bucket")) {
    position_.bucket = loader["bucket"].as_int();
    position_.window = loader["window"].as_int();
  }
  train_.seek(position_);
  checkpointed_ = step_;
  // A rank without a saved RNG state (the run has more ranks than before) keeps its initial one.
  const Value& rng = state["rng"];
  const int rank = ranks_ == nullptr ? 0 : ranks_->rank();
  const Value* mine = &rng;
  if (rank > 0) {
    const auto* others = rng.as_dict().find("ranks");
    const auto number = static_cast<std::size_t>(rank - 1);
    mine = others && number < others->as_list().size() ? &others->as_list()[number] : nullptr;
  }
  if (mine != nullptr) {
    auto generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(as_tensor((*mine)["torch"]));
    if (device_.is_cuda() && mine->as_dict().contains("cuda")) {
      auto on_device = at::globalContext().defaultGenerator(device_);
      on_device.set_state(as_tensor((*mine)["cuda"]));
    }
  }
  if (first() && state["version"].as_string() != version) {
    log(LogLevel::warning, c10::str(source, ": was written by version ",
                                    state["version"].as_string(), ", this is ", version));
  }
}

}  // namespace millrace
