#include "train_options.h"

#include <millrace/pipeline/error.h>
#include <millrace/pipeline/log.h>
#include <millrace/training/tracker.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

namespace millrace {

void add_train_options(CLI::App& app, TrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->capture_default_str();
  };
  app.set_config("--config", "", "a TOML file with any of these options, without the dashes");
  add("folder,--folder", o.folder, "the files to train on")->required();
  add("--num-train-steps", o.num_train_steps, "")->required()->check(CLI::PositiveNumber);
  add("--batch-size", o.batch_size, "")->required()->check(CLI::PositiveNumber);
  add("--grad-accum-every", o.grad_accum_every, "micro-batches of a step")
      ->check(CLI::PositiveNumber);
  add("--results-folder", o.results_folder, "made if it is not there");
  add("--save-results-every", o.save_results_every, "steps: samples and validation; 0: never");
  add("--save-model-every", o.save_model_every, "steps: the weights alone; 0: never");
  add("--checkpoint-every", o.checkpoint_every, "steps: everything; 0: as --save-model-every");
  add("--keep", o.keep, "how many checkpoints stay; 0: all");
  add("--valid-frac", o.valid_frac, "share of the files that is kept for validation; 0: none");
  add("--valid-batches", o.valid_batches, "the first so many validation batches; 0: all");
  add("--random-split-seed", o.random_split_seed, "of the split");
  add("--use-ema", o.use_ema, "keep a moving average of the weights");
  add("--ema-beta", o.ema_beta, "");
  add("--ema-update-after-step", o.ema_update_after_step, "");
  add("--ema-update-every", o.ema_update_every, "");
  add("--schedule", o.schedule, "of the learning rate: constant, linear, cosine or step");
  add("--warmup-steps", o.warmup_steps, "until the learning rate is reached");
  add("--mixed-precision", o.mixed_precision, "no, bf16, or fp16 (on a GPU)")
      ->check(CLI::IsMember({"no", "bf16", "fp16"}));
  add("--device", o.device, "auto, cpu, cuda, or cuda:N; with ranks, cuda is each rank's own");
  add("--max-bad-steps", o.max_bad_steps, "in a row without a finite loss");
  add("--seed", o.seed, "of weights, order and augmentation");
  add("--threads", o.threads, "of the arithmetic; 0: one a core");
  add("--workers", o.workers, "that load files; 0: one a core");
  add("--prefetch", o.prefetch, "batches made ahead")->check(CLI::PositiveNumber);
  auto* resume = app.add_flag("--resume", o.resume, "go on from the newest checkpoint, if any");
  app.add_flag("--clear", o.clear, "remove an earlier run from the results folder")
      ->excludes(resume);
  app.add_flag("--json", o.json, "print the result as JSON");
}

SchedulerOptions scheduler_options(const TrainOptions& o, const Place& place) {
  return {.num_train_steps = o.num_train_steps,
          .grad_accum_every = o.grad_accum_every,
          .save_results_every = o.save_results_every,
          .save_model_every = o.save_model_every,
          .checkpoint_every = o.checkpoint_every,
          .keep = o.keep,
          .valid_batches = o.valid_batches,
          .use_ema = o.use_ema,
          .ema = {.beta = o.ema_beta,
                  .update_after_step = o.ema_update_after_step,
                  .update_every = o.ema_update_every},
          .schedule = {.kind = schedule_kind(o.schedule),
                       .steps = o.num_train_steps,
                       .warmup_steps = o.warmup_steps},
          .precision = precision(o.mixed_precision),
          .max_bad_steps = o.max_bad_steps,
          .ranks = place.ranks.get(),
          .accelerator = place.accelerator.get()};
}

namespace {

struct Parts {
  AnyDataset train, valid;
};

// The same indices of both; without a validation part, the training part serves as one.
Parts split(const TrainOptions& o, const AnyDataset& augmented, const AnyDataset& plain) {
  if (o.valid_frac <= 0) return {augmented, plain};
  const SplitOptions options{.valid_fraction = o.valid_frac, .seed = o.random_split_seed};
  return {random_split(augmented, options).train, random_split(plain, options).valid};
}

// The rank's part of the validation set, or of its first batches: neighbours stay together, and no
// sample is seen twice.
Subset share_of(const AnyDataset& valid, const TrainOptions& o, const Place& place) {
  std::int64_t size = valid->size();
  if (o.valid_batches > 0) size = std::min(size, o.valid_batches * o.batch_size);
  const std::int64_t world = place.world();
  auto border = [&](std::int64_t rank) { return (size * rank + world - 1) / world; };
  std::vector<std::int64_t> indices(
      static_cast<std::size_t>(border(place.rank() + 1) - border(place.rank())));
  std::iota(indices.begin(), indices.end(), border(place.rank()));
  return Subset(valid, std::move(indices));
}

std::string ledger_name(int rank) {
  return rank == 0 ? "errors.jsonl" : c10::str("errors.rank", rank, ".jsonl");
}

LoaderOptions for_training(const TrainOptions& o, const Place& place, LoaderOptions options) {
  options.batch_size = o.batch_size;
  options.shuffle = true;
  options.seed = o.seed;
  options.prefetch = o.prefetch;
  options.pool = std::make_shared<Pool>(o.workers);
  options.rank = place.rank();
  options.world = place.world();
  options.group = o.grad_accum_every;
  options.errors.ledger = std::filesystem::path(o.results_folder) / ledger_name(place.rank());
  // Where a resumed run really goes on is in its checkpoint; here it keeps the ledger.
  if (o.resume) options.position = Position{.seed = o.seed};
  return options;
}

std::optional<Loader> validation_loader(const TrainOptions& o, const Place& place,
                                        const AnyDataset& valid, LoaderOptions options) {
  Subset share = share_of(valid, o, place);
  if (share.size() == 0) return std::nullopt;
  options.batch_size = o.batch_size;
  options.prefetch = 1;
  options.pool = std::make_shared<Pool>(1);
  return Loader(std::move(share), std::move(options));
}

LoaderOptions on_device(LoaderOptions options, const Place& place) {
  if (place.accelerator) options.device = open_cuda_device(place.device().index());
  return options;
}

}  // namespace

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

TrainingData::TrainingData(const TrainOptions& o, const Place& place, const AnyDataset& augmented,
                           const AnyDataset& plain, LoaderOptions options)
    : train(split(o, augmented, plain).train, for_training(o, place, on_device(options, place))),
      valid(validation_loader(o, place, split(o, augmented, plain).valid,
                              on_device(options, place))) {}

int run_in_place(const TrainOptions& o, const std::function<int(const Place&)>& body) {
  const std::optional<Ranks> ranks = ranks_from_environment();
  if (ranks && ranks->rank > 0) set_log_level(LogLevel::warning);  // rank 0 speaks for all
  Place place;
  place.accelerator = find_accelerator(o.device, ranks ? ranks->local_rank : 0);
  if (o.mixed_precision == "fp16" && !place.accelerator) {
    throw Error("--mixed-precision fp16 needs a GPU; on the CPU there is bf16")
        .kind(ErrorKind::usage);
  }
  torch::manual_seed(o.seed);
  if (o.threads > 0) torch::set_num_threads(o.threads);
  if (!ranks) return body(place);
  place.ranks =
      std::make_unique<RankGroup>(*ranks, RankGroupOptions{.accelerator = place.accelerator.get()});
  log(LogLevel::info, c10::str("rank 0 of ", ranks->world, " ranks: all are here"));
  try {
    const int code = body(place);
    return code;
  } catch (const std::exception& error) {
    place.ranks->fail(error.what());
    throw;
  }
}

RunFolder open_run_folder(const TrainOptions& o, const Place& place, const std::string& config) {
  const bool first = place.rank() == 0;
  if (!first) place.ranks->barrier();  // it is made, or rank 0 has told why not
  RunFolder folder(o.results_folder, first ? o.old_run() : OldRun::resume);
  if (first) folder.write_config("config.toml", config);
  if (first && place.ranks) place.ranks->barrier();
  return folder;
}

int run(const CLI::App& app, const TrainOptions& o, const Place& place, const RunFolder& folder,
        Scheduler& scheduler) {
  const std::int64_t first = o.resume ? scheduler.resume() : 0;
  if (place.rank() > 0) return scheduler.run();
  scheduler.add_tracker(std::make_unique<JsonLinesTracker>(folder / "metrics.jsonl", first));
  auto board = std::make_unique<TensorBoardTracker>(folder.path(), first);
  std::vector<std::pair<std::string, std::string>> given;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name().starts_with("--") && option->get_name() != "--help") {
      const std::string value = option->count() > 0 ? CLI::detail::join(option->results(), " ")
                                                    : option->get_default_str();
      given.emplace_back(option->get_name().substr(2), value);
    }
  }
  board->hyper_parameters(given);
  scheduler.add_tracker(std::move(board));
  const int code = scheduler.run();
  if (o.json) {
    nlohmann::ordered_json result{{"step", scheduler.step()}, {"exit_code", code}};
    for (const auto& [name, value] : scheduler.last_logs()) result[name] = value;
    std::printf("%s\n", result.dump().c_str());
  } else {
    std::printf("%lld steps done, results in %s\n", static_cast<long long>(scheduler.step()),
                folder.path().c_str());
  }
  return code;
}

int main_of(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  try {
    return body();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().empty() ? argv[0] : app.get_name().c_str(),
                 error.what());
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace millrace
