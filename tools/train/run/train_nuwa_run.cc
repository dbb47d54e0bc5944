// Runs train_nuwa: makes data set, model and stage from its options.
#include "tools/preprocess/tokens/model_weights.h"
#include "tools/train/run/nuwa_data.h"
#include "tools/train/run/train_run.h"

#include <millrace/datasets/compose/collations.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/nuwa/nuwa_stage.h>

#include <c10/util/StringUtil.h>

namespace millrace {
namespace {

struct Vae {
  NuwaVqganConfig config;
  Dict weights;
};

Vae open_vae(const NuwaTrainOptions& o) {
  const Value saved = read_checkpoint(o.vae);
  const TokenModelOptions options{.model = o.vae, .config = o.vae_config, .weights = o.vae_weights};
  const std::string defaults = NuwaVqganConfig{.layer_mults = {1}}.to_json();
  Vae vae{NuwaVqganConfig::from_json(model_configuration(saved, options, defaults)), {}};
  // The discriminator is not loaded.
  vae.config.use_vgg_and_gan = false;
  for (const auto& [key, value] : model_weights(saved, options)) {
    if (!key.as_string().starts_with("discr.")) vae.weights.set(key, value);
  }
  return vae;
}

NuwaConfig model_of(const NuwaTrainOptions& o, const NuwaVqganConfig& vae,
                    const Tokenizer& tokenizer) {
  NuwaConfig model = o.model;
  model.vae = vae;
  model.compat = o.stage.compat;
  if (o.kernel.size() == 1) {
    model.sparse_3dna_kernel_size.fill(o.kernel[0]);
  } else if (o.kernel.size() == 3) {
    model.sparse_3dna_kernel_size = {o.kernel[0], o.kernel[1], o.kernel[2]};
  } else {
    throw Error(c10::str("--sparse-3dna-kernel-size is one number or three, not ", o.kernel.size()))
        .kind(ErrorKind::usage);
  }
  const std::int64_t words = tokenizer.vocabulary();
  if (model.text_num_tokens == 0) model.text_num_tokens = words;
  if (model.text_num_tokens < words) {
    throw Error(
        c10::str("--text-num-tokens is ", model.text_num_tokens, ", but the tokenizer has ", words))
        .kind(ErrorKind::usage);
  }
  model.check();
  return model;
}

int train(const Options& flags, NuwaTrainOptions& o, const ProcessContext& context) {
  const auto tokenizer = nuwa_tokenizer(o);
  const Vae vae = open_vae(o);
  o.model = model_of(o, vae.config, *tokenizer);
  o.stage.tokenizer = tokenizer;
  o.stage.optimizer = optimizer_options(o.train);
  o.stage.device = context.device();
  o.stage.seed = o.train.seed;
  o.stage.generate.num_frames = o.num_sampled_frames;
  const NuwaData files = nuwa_data(o, tokenizer);
  check_sizes(o.train, files.augmented->size());
  NuwaStage stage(o.model, o.stage);
  copy_tensors(vae.weights, state_tensors(*stage.nuwa()->vae()), o.vae);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  LoaderOptions loader{.collate = collate_clips(files.plain->schema())};
  if (files.pixels) loader.to_float = {{"video", ToFloat::unit()}};
  TrainingData data(o.train, context, files.augmented, files.plain, loader);
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, context));
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_nuwa(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<NuwaTrainOptions*>(values);
  return run_guarded([&] {
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
