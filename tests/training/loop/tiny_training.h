// Trains tiny models on generated pictures, in this process.
#pragma once

#include "tests/reference.h"

#include <millrace/datasets/compose/generated.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/loop/scheduler.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_stage.h>
#include <millrace/training/models/vqgan/vqgan_stage.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace millrace {

inline VqganConfig tiny() {
  return {.dim = 16, .layers = 1, .codebook_size = 16, .discr_layers = 1, .num_resnet_blocks = {0}};
}

// A frame discriminator and a multi-scale one, both from step 2 on. Clips are single pictures.
inline VideoTokenizerConfig tiny_video() {
  VideoTokenizerConfig config{.image_size = 16,
                              .layers = {{"compress_space", 6}, {"residual"}},
                              .codebook_size = 16,
                              .init_dim = 4,
                              .input_conv_kernel_size = {3, 3, 3}};
  config.discr_kwargs = {.dim = 1, .max_dim = 4, .linear_attn_dim_head = 2, .linear_attn_heads = 1};
  config.multiscale_discrs = {{.dim = 1, .max_dim = 4, .scale = 2}};
  return config;
}

inline VideoTokenizerStageOptions tiny_video_options() {
  return {
      .discr_start_after_step = 2, .validate_every_step = 5, .field = "image", .valid_field = ""};
}

using Hook = std::function<void(std::int64_t step, const Logs& logs)>;

// A run up to `steps`, resumed if `old` says so. Fills `logs` with the logged values of each step.
struct Training {
  std::filesystem::path folder;
  std::int64_t steps = 6;
  OldRun old = OldRun::refuse;
  Hook hook = [](std::int64_t, const Logs&) {};
  SchedulerOptions options{};
  VqganStageOptions stage_options{};
  // Replace this to train another stage.
  std::function<std::unique_ptr<Stage>()> make_stage = [this] {
    return std::make_unique<VqganStage>(tiny(), stage_options);
  };

  std::map<std::int64_t, Logs> logs{};
  NamedTensors weights{};
  std::int64_t skipped = 0;

  int operator()() {
    torch::set_num_threads(1);
    torch::manual_seed(5);
    const std::unique_ptr<Stage> made = make_stage();
    Stage& stage = *made;
    auto [train_set, valid_set] =
        random_split(GeneratedImages({.count = 23, .shape = {16, 16, 3}}), {.valid_fraction = 0.2});
    const std::map<std::string, ToFloat> to_float{{"image", ToFloat::unit()}};
    auto pool = std::make_shared<Pool>(1);
    Loader train(train_set, {.batch_size = 4, .shuffle = true, .pool = pool, .to_float = to_float});
    Loader valid(valid_set, {.batch_size = 4, .pool = pool, .to_float = to_float});
    const RunFolder run_folder(folder, old);
    run_folder.write_config("config.toml", "");
    options.num_train_steps = steps;
    options.ema = {.beta = 0.995, .update_after_step = 0, .update_every = 1};
    if (options.checkpoint_every == 0) options.checkpoint_every = 2;
    Scheduler scheduler(stage, train, &valid, run_folder, options);
    const std::int64_t first = scheduler.resume();
    scheduler.add_tracker(std::make_unique<JsonLinesTracker>(folder / "metrics.jsonl", first));
    scheduler.add_tracker(
        std::make_unique<CallbackTracker>([this](std::int64_t step, const Logs& at_step) {
          for (const auto& entry : at_step) logs[step].push_back(entry);
          hook(step, at_step);
        }));
    const int code = scheduler.run();
    weights = state_tensors(stage.model());
    skipped = scheduler.bad_steps();
    return code;
  }
};

inline bool same(const NamedTensors& a, const NamedTensors& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i)
    equal = torch::equal(a[i].second, b[i].second);
  return equal;
}

}  // namespace millrace
