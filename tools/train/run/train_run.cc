// Runs a training: ranks, loaders, trackers, progress, and the printed result.
#include "tools/train/run/train_run.h"

#include "tools/cli/malloc_tuning.h"
#include "tools/cli/progress.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/loop/stop_signal.h>
#include <millrace/training/tracking/tracker.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <numeric>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

struct Parts {
  AnyDataset train, valid;
};

// The same indices of both data sets; without a validation set, the training set is used.
Parts split(const TrainOptions& o, const AnyDataset& augmented, const AnyDataset& plain) {
  if (o.valid_frac <= 0) return {augmented, plain};
  const SplitOptions options{.valid_fraction = o.valid_frac, .seed = o.random_split_seed};
  return {random_split(augmented, options).train, random_split(plain, options).valid};
}

// This rank's contiguous share of the validation set, or of its first batches. No sample is in two
// shares.
Subset share_of(const AnyDataset& valid, const TrainOptions& o, const ProcessContext& context) {
  std::int64_t size = valid->size();
  if (o.valid_batches > 0) size = std::min(size, o.valid_batches * o.batch_size);
  const std::int64_t world = context.world();
  auto border = [&](std::int64_t rank) { return (size * rank + world - 1) / world; };
  std::vector<std::int64_t> indices(
      static_cast<std::size_t>(border(context.rank() + 1) - border(context.rank())));
  std::iota(indices.begin(), indices.end(), border(context.rank()));
  return Subset(valid, std::move(indices));
}

LoaderOptions for_training(const TrainOptions& o, const ProcessContext& context,
                           LoaderOptions options) {
  options.batch_size = o.batch_size;
  options.shuffle = true;
  options.seed = o.seed;
  options.prefetch = o.prefetch;
  options.pool = std::make_shared<Pool>(o.workers);
  options.rank = context.rank();
  options.world = context.world();
  options.group = o.grad_accum_every;
  options.errors.fail = o.on_error == "fail";
  options.errors.max_fraction = o.max_error_share;
  options.errors.max_name = "--max-error-share";
  options.errors.ledger =
      std::filesystem::path(o.results_folder) / "errors.jsonl";  // the loader adds the rank
  // A position makes the loader append to the ledger; the checkpoint then sets the real position.
  if (o.resume) options.position = Position{.seed = o.seed};
  return options;
}

std::optional<Loader> validation_loader(const TrainOptions& o, const ProcessContext& context,
                                        const AnyDataset& valid, LoaderOptions options) {
  Subset share = share_of(valid, o, context);
  if (share.size() == 0) return std::nullopt;
  options.batch_size = o.batch_size;
  options.tail = Tail::shorten;  // validate on every sample
  options.prefetch = 1;
  options.bucket.window = 0;  // unsorted, so that samples of all lengths are shown
  options.pool = std::make_shared<Pool>(1);
  options.errors.fail = o.on_error == "fail";
  options.errors.max_fraction = o.max_error_share;
  options.errors.max_name = "--max-error-share";
  return Loader(std::move(share), std::move(options));
}

LoaderOptions on_device(LoaderOptions options, const ProcessContext& context) {
  if (context.accelerator) options.device = open_cuda_device(context.device().index());
  return options;
}

// "loss 0.0123  discr_loss 1.02  31.4 items/s  data 0.3 %"
std::string note_of(const StepReport& report) {
  std::string note;
  char text[64];
  for (const auto& [name, value] : report.losses) {
    std::snprintf(text, sizeof text, " %.4g  ", value);
    note.append(name).append(text);
  }
  std::snprintf(text, sizeof text, "%.1f items/s  data %.1f %%", report.rates.items_per_second,
                100 * report.rates.data_wait);
  note += text;
  if (report.padding == 0) return note;
  std::snprintf(text, sizeof text, "  padding %.1f %%", 100 * report.padding);
  return note + text;
}

void print_result(const TrainOptions& o, const RunFolder& folder, const Scheduler& scheduler,
                  int code) {
  if (!o.json) {
    std::printf("%lld steps done, results in %s\n", static_cast<long long>(scheduler.step()),
                folder.path().c_str());
    return;
  }
  const StepMeter::Rates whole = scheduler.rates();
  nlohmann::ordered_json result{{"step", scheduler.step()},
                                {"exit_code", code},
                                {"steps_per_second", whole.steps_per_second},
                                {"items_per_second", whole.items_per_second},
                                {"data_wait", whole.data_wait},
                                {"optimizer", whole.optimizer}};
  if (whole.backward > 0) {
    result["backward"] = whole.backward;
    result["forward"] = 1 - whole.data_wait - whole.backward - whole.optimizer;
  }
  for (const auto& [name, value] : scheduler.last_logs()) result[name] = value;
  std::printf("%s\n", result.dump().c_str());
}

// A signal before the first step ends the run at that step with a checkpoint, unless reaching it
// takes longer than this.
constexpr std::chrono::seconds patience_before_the_loop{5};

constexpr const char* config_file = "config.toml";

void write_config(const Options& flags, const RunFolder& folder) {
  folder.write_config(config_file, CommandLine::toml(flags, {"resume", "clear", "json", "quiet"}));
}

OldRun old_run(const TrainOptions& o) {
  return o.resume ? OldRun::resume : o.clear ? OldRun::clear : OldRun::refuse;
}

}  // namespace

OptimizerOptions optimizer_options(const TrainOptions& o) {
  OptimizerOptions options{.kind = optimizer_kind(o.optimizer),
                           .lr = o.lr,
                           .eps = o.eps,
                           .weight_decay = o.weight_decay};
  if (options.kind == OptimizerKind::lion) options.betas = {0.9, 0.99};
  if (o.betas.size() == 2) options.betas = {o.betas[0], o.betas[1]};
  return options;
}

SchedulerOptions scheduler_options(const TrainOptions& o, const ProcessContext& context) {
  SchedulerOptions options{.num_train_steps = o.num_train_steps,
                           .grad_accum_every = o.grad_accum_every,
                           .save_results_every = o.save_results_every,
                           .save_model_every = o.save_model_every,
                           .checkpoint_every = o.checkpoint_every,
                           .checkpoint_numbers = o.checkpoint_numbers,
                           .keep = o.keep,
                           .valid_batches = o.valid_batches,
                           .use_ema = o.use_ema,
                           .ema = o.ema,
                           .schedule = o.lr_schedule,
                           .precision = precision(o.mixed_precision),
                           .max_bad_steps = o.max_bad_steps,
                           .ranks = context.ranks.get(),
                           .accelerator = context.accelerator.get()};
  options.schedule.kind = schedule_kind(o.schedule);
  options.schedule.steps = o.num_train_steps;
  return options;
}

void check_sizes(const TrainOptions& o, std::int64_t samples) {
  const auto training =
      static_cast<std::int64_t>((1 - o.valid_frac) * static_cast<double>(samples));
  if (training >= o.batch_size && (o.valid_frac <= 0 || training < samples)) return;
  throw Error(c10::str("there are ", samples, " files, ", training,
                       " of them for training: too few for batches of ", o.batch_size))
      .at(o.folder)
      .hint(c10::str("Give more files, a smaller --batch-size, or another --valid-frac (now ",
                     o.valid_frac, ")"))
      .kind(ErrorKind::usage);
}

TrainingData::TrainingData(const TrainOptions& o, const ProcessContext& context,
                           const AnyDataset& augmented, const AnyDataset& plain,
                           LoaderOptions options)
    : train(split(o, augmented, plain).train,
            for_training(o, context, on_device(options, context))),
      valid(validation_loader(o, context, split(o, augmented, plain).valid,
                              on_device(options, context))) {}

int run_in_context(const TrainOptions& o, const std::function<int(const ProcessContext&)>& body) {
  const StopSignal stop(patience_before_the_loop);
  tune_malloc();
  const std::optional<Ranks> ranks = ranks_from_environment();
  if (o.quiet || (ranks && ranks->rank > 0)) set_log_level(LogLevel::warning);  // only rank 0 logs
  ProcessContext context;
  context.accelerator = find_accelerator(o.device, ranks ? ranks->local_rank : 0);
  if (o.mixed_precision == "fp16" && !context.accelerator) {
    throw Error("--mixed-precision fp16 needs a GPU; on the CPU there is bf16")
        .kind(ErrorKind::usage);
  }
  torch::manual_seed(o.seed);
  if (o.threads > 0) torch::set_num_threads(o.threads);
  if (!ranks) return body(context);
  context.ranks = std::make_unique<RankGroup>(
      *ranks, RankGroupOptions{.accelerator = context.accelerator.get()});
  log(LogLevel::info, c10::str("rank 0 of ", ranks->world, " ranks: all are here"));
  try {
    const int code = body(context);
    return code;
  } catch (const std::exception& error) {
    context.ranks->fail(error.what());
    throw;
  }
}

RunFolder open_run_folder(const Options& flags, const TrainOptions& o,
                          const ProcessContext& context) {
  const bool first = context.rank() == 0;
  if (!first) context.ranks->barrier();  // rank 0 has made it, or has failed and said why
  RunFolder folder(o.results_folder, first ? old_run(o) : OldRun::join, o.checkpoints_folder,
                   o.checkpoint_stem);
  // The config.toml of an earlier run stays until its checkpoint was loaded.
  if (first && !std::filesystem::exists(folder / config_file)) write_config(flags, folder);
  if (first && context.ranks) context.ranks->barrier();
  return folder;
}

int run(const Options& flags, const TrainOptions& o, const ProcessContext& context,
        const RunFolder& folder, Scheduler& scheduler) {
  const std::int64_t first = o.resume ? scheduler.resume() : 0;
  if (context.rank() > 0) return scheduler.run();
  if (o.resume) write_config(flags, folder);
  scheduler.add_tracker(std::make_unique<JsonLinesTracker>(folder / "metrics.jsonl", first));
  auto board = std::make_unique<TensorBoardTracker>(folder.path(), first);
  board->hyper_parameters(CommandLine::settings(flags));
  scheduler.add_tracker(std::move(board));
  Progress progress({.what = "steps",
                     .total = o.num_train_steps,
                     .done = first,
                     .unit = "steps",
                     .files = false,
                     .quiet = o.quiet});
  scheduler.set_step_callback([&](const StepReport& report) {
    progress.update({.items = report.step - first, .note = note_of(report)});
  });
  const int code = scheduler.run();
  progress.finish();
  print_result(o, folder, scheduler, code);
  return code;
}

int run_guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    throw Error(error.what_without_backtrace()).stage("libtorch");
  }
}

}  // namespace millrace
