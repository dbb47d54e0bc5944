// Runs train_vqgan: makes data set, model and stage from its options.
#include "tools/train/run/train_run.h"
#include "tools/train/vqgan_options.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/vqgan/vqgan_stage.h>

#include <c10/util/StringUtil.h>

namespace millrace {
namespace {

// Checks the options before anything is read or written.
void check_options(const VqganTrainOptions& o) {
  o.model.check();
  if (o.image_size % o.model.divisor() == 0 && o.image_size >= o.model.smallest_side()) return;
  throw Error(c10::str("--image-size must be a multiple of ", o.model.divisor(), " and at least ",
                       o.model.smallest_side(), " for ", o.model.layers, " layers and ",
                       o.model.discr_layers, " discr-layers, but is ", o.image_size))
      .kind(ErrorKind::usage);
}

int train(const Options& flags, VqganTrainOptions& o, const ProcessContext& context) {
  o.stage.optimizer = optimizer_options(o.train);
  o.stage.device = context.device();
  const int channels = static_cast<int>(o.model.channels);
  auto pictures = [&](double flip) {
    return ImageFolder(o.train.folder, {.size = o.image_size, .channels = channels, .flip = flip});
  };
  const ImageFolder augmented = pictures(0.5), plain = pictures(0);
  check_sizes(o.train, augmented.size());
  VqganStage stage(o.model, o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  TrainingData data(o.train, context, augmented, plain, {.to_float = {{"image", ToFloat::unit()}}});
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, context));
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_vqgan(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<VqganTrainOptions*>(values);
  return run_guarded([&] {
    check_options(asked);
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
