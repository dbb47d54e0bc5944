// The run of train_vqgan: what its options become.
#include "tools/train/run/train_run.h"
#include "tools/train/vqgan_options.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/models/module/module_tensors.h>

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {
namespace {

// All that can be known to be wrong before anything is read or written.
void check_options(const VqganTrainOptions& o) {
  o.model.check();
  if (o.image_size % o.model.divisor() == 0 && o.image_size >= o.model.smallest_side()) return;
  throw Error(c10::str("--image-size must be a multiple of ", o.model.divisor(), " and at least ",
                       o.model.smallest_side(), " for ", o.model.layers, " layers and ",
                       o.model.discr_layers, " discr-layers, but is ", o.image_size))
      .kind(ErrorKind::usage);
}

int train(const CLI::App& app, VqganTrainOptions& o, const Place& place) {
  o.stage.optimizer = optimizer_options(o.train);
  o.stage.device = place.device();
  const int channels = static_cast<int>(o.model.channels);
  auto pictures = [&](double flip) {
    return ImageFolder(o.train.folder, {.size = o.image_size, .channels = channels, .flip = flip});
  };
  const ImageFolder augmented = pictures(0.5), plain = pictures(0);
  check_sizes(o.train, augmented.size());
  VqganStage stage(o.model, o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(app, o.train, place);
  TrainingData data(o.train, place, augmented, plain, {.to_float = {{"image", ToFloat::unit()}}});
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, place));
  return run(app, o.train, place, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_vqgan(const CLI::App* app,
                                                                           void* options) {
  using namespace millrace;
  auto& asked = *static_cast<VqganTrainOptions*>(options);
  return run_guarded([&] {
    check_options(asked);
    return run_in_place(asked.train, [&](const Place& place) { return train(*app, asked, place); });
  });
}
