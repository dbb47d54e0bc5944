#include "tools/train/train_options.h"

#include "tools/cli/dynamic_library.h"

#include <millrace/pipeline/base/error.h>

namespace millrace {

namespace {

void add_data_options(const Options& options, TrainOptions& o, const TrainNames& names) {
  Options data = options.group("Data");
  data.add(names.folder, o.folder, "folder or cache to train on; subfolders are included")
      .required();
  Option batch =
      data.add("--batch-size", o.batch_size, "number of samples in a batch, per rank").positive();
  if (o.batch_size == 0) batch.required();
  data.add("--valid-frac", o.valid_frac,
           "fraction of files held out for validation; 0: validate on the training files")
      .range(0.0, 0.99);
  data.add("--random-split-seed", o.random_split_seed,
           "seed of the train/validation split, as in torch's random_split");
  data.add(names.valid_batches, o.valid_batches,
           "number of batches to validate on; 0: the whole validation set")
      .non_negative();
  data.add("--on-error", o.on_error,
           "what to do with an unreadable file: skip (and list it in errors.jsonl) or fail")
      .one_of({"skip", "fail"});
  data.add("--max-error-share", o.max_error_share,
           "fraction of unreadable files above which the run fails")
      .range(0.0, 1.0);
  data.add("--workers", o.workers, "number of threads that load files; 0: one per core")
      .range(0, 1024);
  data.add("--prefetch", o.prefetch, "number of batches to load ahead").positive();
}

void add_optimizer_options(const Options& options, TrainOptions& o, const TrainNames& names) {
  Options optimizer = options.group("Optimizer");
  optimizer.add("--num-train-steps", o.num_train_steps, "total number of optimizer steps")
      .required()
      .positive();
  optimizer
      .add("--grad-accum-every", o.grad_accum_every,
           "number of batches whose gradients are added up before each optimizer step")
      .positive();
  optimizer.add("--optimizer", o.optimizer, "optimizer to use: adam, adamw or lion")
      .one_of({"adam", "adamw", "lion"});
  optimizer.add(names.lr, o.lr, "learning rate after the warm-up").non_negative();
  optimizer
      .add("--betas", o.betas,
           o.betas.empty() ? "two betas of the optimizer; default 0.9 0.999, for lion 0.9 0.99"
                           : "two betas of the optimizer")
      .expected(2);
  optimizer.add("--eps", o.eps, "epsilon of adam and adamw");
  optimizer
      .add("--weight-decay,--wd", o.weight_decay,
           "weight decay of parameters with 2 or more dimensions")
      .non_negative();
  optimizer
      .add(names.schedule, o.schedule, "learning rate schedule: constant, linear, cosine or step")
      .one_of({"constant", "linear", "cosine", "step"});
  optimizer
      .add("--warmup-steps", o.lr_schedule.warmup_steps,
           "number of steps of linear warm-up of the learning rate")
      .non_negative();
  optimizer.add("--lr-start-factor", o.lr_schedule.start_factor,
                "linear schedule: factor of the learning rate at the first step");
  optimizer.add("--lr-end-factor", o.lr_schedule.end_factor,
                "linear and cosine schedule: factor of the learning rate at the last step");
  optimizer.add("--lr-step-size", o.lr_schedule.step_size,
                "step schedule: number of steps between two reductions of the learning rate");
  optimizer.add("--lr-gamma", o.lr_schedule.gamma,
                "step schedule: factor of the learning rate at each reduction");
  optimizer
      .add("--mixed-precision", o.mixed_precision,
           "precision of the forward pass: no (float32), bf16, or fp16 (GPU only)")
      .one_of({"no", "bf16", "fp16"});
  optimizer.add("--device", o.device,
                "device to train on: auto, cpu, cuda, or cuda:N; with ranks, cuda is the GPU of "
                "the local rank");
  optimizer
      .add("--max-bad-steps", o.max_bad_steps,
           "number of consecutive steps without a finite loss after which the run fails")
      .positive();
  optimizer.add("--seed", o.seed, "random seed of weights, sample order and augmentation");
  optimizer.add("--threads", o.threads, "number of LibTorch threads; 0: one per core")
      .range(0, 1024);
}

void add_average_options(const Options& options, TrainOptions& o) {
  Options average = options.group("Moving average");
  average.add("--use-ema", o.use_ema,
              "keep an exponential moving average (EMA) of the weights, validate and save it");
  average.add("--ema-beta", o.ema.beta, "maximum decay of the EMA per update").range(0.0, 1.0);
  average.add("--ema-update-after-step", o.ema.update_after_step,
              "step until which the EMA is a copy of the model");
  average.add("--ema-update-every", o.ema.update_every, "number of steps between EMA updates")
      .positive();
  average.add("--ema-inv-gamma", o.ema.inv_gamma,
              "EMA decay is 1 - (1 + step / inv-gamma)^-power, up to --ema-beta");
  average.add("--ema-power", o.ema.power,
              "exponent of the EMA decay; 2/3 for long runs, 3/4 for short ones");
  average.add("--ema-min-value", o.ema.min_value, "minimum decay of the EMA per update");
}

void add_result_options(const Options& options, TrainOptions& o, const TrainNames& names) {
  Options results = options.group("Results");
  results.add("--results-folder", o.results_folder,
              "folder for samples, logs and weights; created if missing");
  if (names.checkpoints_folder != nullptr) {
    results.add(names.checkpoints_folder, o.checkpoints_folder,
                "folder for checkpoints; created if missing");
  }
  results
      .add(names.save_results_every, o.save_results_every,
           "number of steps between validations with samples; 0: never")
      .non_negative();
  if (names.save_model_every != nullptr) {
    results
        .add(names.save_model_every, o.save_model_every,
             "number of steps between files with the weights alone; 0: at the end only")
        .non_negative();
  }
  results
      .add(names.checkpoint_every, o.checkpoint_every,
           names.save_model_every != nullptr
               ? "number of steps between checkpoints for --resume; 0: as --save-model-every"
               : "number of steps between checkpoints for --resume; 0: at the end only")
      .non_negative();
  results.add("--keep", o.keep, "number of checkpoints to keep; 0 keeps all").non_negative();
  Option resume = results.flag(
      "--resume", o.resume, "continue from the newest checkpoint; without one, start from step 0");
  results.flag("--clear", o.clear, "remove an earlier run from the results folder first")
      .excludes(resume);
  results.flag("--json", o.json, "print the result as one JSON object");
  results.flag("--quiet", o.quiet, "print warnings and the result only, no progress");
}

}  // namespace

void add_train_options(const Options& options, TrainOptions& o, const TrainNames& names) {
  add_data_options(options, o, names);
  add_optimizer_options(options, o, names);
  if (names.average) add_average_options(options, o);
  add_result_options(options, o, names);
}

int run_trainer(const std::string& name, const Options& options, void* values) {
  void* trainers = open_library("libmillrace_trainers.so");
  if (trainers == nullptr) {
    throw Error("libmillrace_trainers.so is neither beside this program nor in ../lib")
        .hint("Install Millrace again: cmake --install")
        .kind(ErrorKind::usage);
  }
  using Entry = int (*)(const Options*, void*);
  return reinterpret_cast<Entry>(find_function(trainers, name))(&options, values);
}

}  // namespace millrace
