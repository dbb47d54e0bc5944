#include "tools/train/train_options.h"

#include "tools/cli/dynamic_library.h"

#include <millrace/pipeline/base/error.h>

namespace millrace {

namespace {

void add_data_options(CLI::App& app, TrainOptions& o, const TrainNames& names) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  app.add_option(names.folder, o.folder, "the files to train on, also in folders below it")
      ->required()
      ->group("Data");
  auto* batch = add("--batch-size", o.batch_size, "samples of a batch")->check(CLI::PositiveNumber);
  if (o.batch_size == 0) batch->required()->default_str("");
  add("--valid-frac", o.valid_frac,
      "share of the files that is never trained on, but judged; 0: judge by the training files")
      ->check(CLI::Range(0.0, 0.99));
  add("--random-split-seed", o.random_split_seed,
      "which files those are; the same as torch's random_split takes");
  add(names.valid_batches, o.valid_batches, "judge by the first so many batches of them; 0: by all")
      ->check(CLI::NonNegativeNumber);
  add("--on-error", o.on_error, "a file that cannot be read: skip it (see errors.jsonl), or fail")
      ->check(CLI::IsMember({"skip", "fail"}));
  add("--max-error-share", o.max_error_share, "fail when more than this share cannot be read")
      ->check(CLI::Range(0.0, 1.0));
  add("--workers", o.workers, "threads that load files; 0: one a core")->check(CLI::Range(0, 1024));
  add("--prefetch", o.prefetch, "batches made ahead")->check(CLI::PositiveNumber);
}

void add_optimizer_options(CLI::App& app, TrainOptions& o, const TrainNames& names) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Optimizer");
  };
  app.add_option("--num-train-steps", o.num_train_steps, "how long to train")
      ->group("Optimizer")
      ->required()
      ->check(CLI::PositiveNumber);
  add("--grad-accum-every", o.grad_accum_every,
      "micro-batches of a step: the effect of a larger batch without its memory")
      ->check(CLI::PositiveNumber);
  add("--optimizer", o.optimizer, "adam, adamw or lion")
      ->check(CLI::IsMember({"adam", "adamw", "lion"}));
  add(names.lr, o.lr, "learning rate")->check(CLI::NonNegativeNumber);
  add("--betas", o.betas,
      o.betas.empty() ? "of the optimizer; by default 0.9 0.999, and 0.9 0.99 for lion"
                      : "of the optimizer")
      ->expected(2);
  add("--eps", o.eps, "of adam and adamw");
  add("--weight-decay,--wd", o.weight_decay, "of parameters with 2 or more dimensions")
      ->check(CLI::NonNegativeNumber);
  add(names.schedule, o.schedule, "of the learning rate: constant, linear, cosine or step")
      ->check(CLI::IsMember({"constant", "linear", "cosine", "step"}));
  add("--warmup-steps", o.lr_schedule.warmup_steps, "steps until the learning rate is reached")
      ->check(CLI::NonNegativeNumber);
  add("--lr-start-factor", o.lr_schedule.start_factor, "linear: where it starts, times the rate");
  add("--lr-end-factor", o.lr_schedule.end_factor, "linear, cosine: where it ends, likewise");
  add("--lr-step-size", o.lr_schedule.step_size, "step: so many steps between two falls");
  add("--lr-gamma", o.lr_schedule.gamma, "step: times this at each fall");
  add("--mixed-precision", o.mixed_precision, "no, bf16, or fp16 (on a GPU)")
      ->check(CLI::IsMember({"no", "bf16", "fp16"}));
  add("--device", o.device, "auto, cpu, cuda, or cuda:N; with ranks, cuda is each rank's own");
  add("--max-bad-steps", o.max_bad_steps,
      "steps without a finite loss are skipped; so many in a row end the run")
      ->check(CLI::PositiveNumber);
  add("--seed", o.seed, "of weights, order and augmentation");
  add("--threads", o.threads, "of the arithmetic; 0: one a core")->check(CLI::Range(0, 1024));
}

void add_average_options(CLI::App& app, TrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Moving average");
  };
  add("--use-ema", o.use_ema, "keep a moving average of the weights; it is judged and saved too");
  add("--ema-beta", o.ema.beta, "how much of the old average an update keeps, at most")
      ->check(CLI::Range(0.0, 1.0));
  add("--ema-update-after-step", o.ema.update_after_step, "until then it is a copy");
  add("--ema-update-every", o.ema.update_every, "steps")->check(CLI::PositiveNumber);
  add("--ema-inv-gamma", o.ema.inv_gamma, "beta grows as 1 - (1 + step / inv-gamma)^-power");
  add("--ema-power", o.ema.power, "likewise; 2/3 for long runs, 3/4 for short ones");
  add("--ema-min-value", o.ema.min_value, "beta is at least this");
}

void add_result_options(CLI::App& app, TrainOptions& o, const TrainNames& names) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Results")->check(CLI::NonNegativeNumber);
  };
  declare(app, "--results-folder", o.results_folder, "made if it is not there", "Results");
  if (names.checkpoints_folder != nullptr) {
    declare(app, names.checkpoints_folder, o.checkpoints_folder, "likewise", "Results");
  }
  add(names.save_results_every, o.save_results_every,
      "steps between samples with a validation; 0: never");
  if (names.save_model_every != nullptr) {
    add(names.save_model_every, o.save_model_every,
        "steps between files with the weights alone; 0: at the end only");
  }
  add(names.checkpoint_every, o.checkpoint_every,
      names.save_model_every != nullptr
          ? "steps between files to resume from; 0: as --save-model-every"
          : "steps between files to resume from; 0: at the end only");
  add("--keep", o.keep, "how many of those stay; 0: all");
  auto flag = [&](const char* name, bool& value, const char* text) {
    return app.add_flag(name, value, text)->group("Results");
  };
  auto* resume = flag("--resume", o.resume, "go on from the newest checkpoint, if there is one");
  flag("--clear", o.clear, "remove an earlier run from the results folder")->excludes(resume);
  flag("--json", o.json, "print the result as one JSON object");
  flag("--quiet", o.quiet, "no progress, warnings only");
}

}  // namespace

void add_train_options(CLI::App& app, TrainOptions& o, const TrainNames& names) {
  add_data_options(app, o, names);
  add_optimizer_options(app, o, names);
  if (names.average) add_average_options(app, o);
  add_result_options(app, o, names);
}

int run_trainer(const std::string& name, const CLI::App& app, void* options) {
  void* trainers = open_beside_program("libmillrace_trainers.so");
  if (trainers == nullptr) {
    throw Error("libmillrace_trainers.so is neither beside this program nor in ../lib")
        .hint("Install Millrace anew: cmake --install")
        .kind(ErrorKind::usage);
  }
  using Entry = int (*)(const CLI::App*, void*);
  return reinterpret_cast<Entry>(function_of(trainers, name))(&app, options);
}

}  // namespace millrace
