// Runs train_nuwa_vae: makes data set, model and stage from its options.
#include "tools/train/nuwa_vae_options.h"
#include "tools/train/run/train_run.h"

#include <millrace/datasets/arrays/moving_mnist.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/vqgan/vqgan_stage.h>

namespace millrace {
namespace {

NuwaVqganConfig model_of(const NuwaVaeTrainOptions& o) {
  NuwaVqganConfig model = o.model;
  model.use_attn.clear();
  for (const std::string& one : o.use_attn) {
    if (one != "true" && one != "false") {
      throw Error("--use-attn is true or false, or one for each layer, not '" + one + "'")
          .kind(ErrorKind::usage);
    }
    model.use_attn.push_back(one == "true");
  }
  model.check();
  return model;
}

// The data set with and without augmentation, and the field that holds the pictures.
struct Pictures {
  AnyDataset augmented, plain;
  std::string field;
};

bool has_clips(const std::filesystem::path& folder) {
  const FileList files(folder, {.extensions = VideoFolder::extensions()});
  return files.size() > 0;
}

Pictures pictures_of(const NuwaVaeTrainOptions& o) {
  const int channels = static_cast<int>(o.model.channels);
  const std::int64_t side = o.model.image_size;
  if (!std::filesystem::is_directory(o.train.folder) && std::filesystem::exists(o.train.folder)) {
    auto clips = [&](bool rotate) {
      return MovingMnist(o.train.folder, {.channels = channels, .rotate = rotate});
    };
    return {clips(o.random_rotate), clips(false), "video"};
  }
  if (o.dataset_type == "images" || (o.dataset_type == "auto" && !has_clips(o.train.folder))) {
    auto pictures = [&](double flip) {
      return ImageFolder(o.train.folder, {.size = side, .channels = channels, .flip = flip});
    };
    return {pictures(o.flip), pictures(0), "image"};
  }
  auto clips = [&](FrameChoice choice) {
    return VideoFolder(
        o.train.folder,
        {.frames = o.num_frames, .size = side, .choice = choice, .channels = channels});
  };
  return {clips(FrameChoice::random_window), clips(FrameChoice::first), "video"};
}

int train(const Options& flags, NuwaVaeTrainOptions& o, const ProcessContext& context) {
  const NuwaVqganConfig model = model_of(o);
  o.stage.optimizer = optimizer_options(o.train);
  // As in Python: decoupled weight decay (AdamW).
  if (o.train.weight_decay > 0 && o.stage.optimizer.kind == OptimizerKind::adam) {
    o.stage.optimizer.kind = OptimizerKind::adamw;
  }
  o.stage.device = context.device();
  const Pictures pictures = pictures_of(o);
  o.stage.field = pictures.field;
  check_sizes(o.train, pictures.augmented->size());
  VqganStage stage(model, o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  TrainingData data(o.train, context, pictures.augmented, pictures.plain,
                    {.to_float = {{pictures.field, ToFloat::unit()}}});
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, context));
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_nuwa_vae(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<NuwaVaeTrainOptions*>(values);
  return run_guarded([&] {
    model_of(asked);
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
