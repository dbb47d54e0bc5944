// Runs train_mesh_autoencoder: makes data set, model and stage from its options.
#include "tools/train/mesh_autoencoder_options.h"
#include "tools/train/run/train_run.h"

#include <millrace/datasets/mesh/mesh_data.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_stage.h>
#include <millrace/training/models/module/module_tensors.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {
namespace {

MeshAutoencoderConfig model_of(const MeshAutoencoderTrainOptions& o) {
  MeshAutoencoderConfig model = o.model;
  model.coor_continuous_range = {o.coordinate_range[0], o.coordinate_range[1]};
  model.rlfq_kwargs.soft_clamp_input_value.reset();
  if (o.soft_clamp > 0) model.rlfq_kwargs.soft_clamp_input_value = o.soft_clamp;
  model.compat = o.stage.compat;
  model.check();
  return model;
}

MeshDataOptions data_of(const MeshAutoencoderTrainOptions& o) {
  MeshDataOptions options = o.meshes.data;
  options.over_long = o.over_long == "error" ? OverLong::error : OverLong::leave_out;
  options.cache = o.meshes.face_edge_cache;
  // As in Python: a data set may have texts, which are ignored here.
  std::erase_if(options.data_kwargs,
                [](const std::string& name) { return name == "texts" || name == "text_embeds"; });
  for (const char* needed : {"vertices", "faces"}) {
    if (std::ranges::count(options.data_kwargs, needed) > 0) continue;
    throw Error(c10::str("--data-kwargs must have ", needed)).kind(ErrorKind::usage);
  }
  return options;
}

int train(const Options& flags, MeshAutoencoderTrainOptions& o, const ProcessContext& context) {
  const MeshAutoencoderConfig model = model_of(o);
  const MeshData meshes = open_meshes(o.train.folder, data_of(o));
  check_sizes(o.train, meshes.plain->size());
  o.stage.optimizer = optimizer_options(o.train);
  o.stage.device = context.device();
  o.stage.seed = o.train.seed;
  o.stage.face_edges = std::ranges::count(o.meshes.data.data_kwargs, "face_edges") > 0;
  MeshAutoencoderStage stage(model, o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  TrainingData data(o.train, context, meshes.augmented, meshes.plain,
                    {.bucket = {.window = o.meshes.bucket_window}, .collate = meshes.collate});
  SchedulerOptions options = scheduler_options(o.train, context);
  options.schedule.stays_at_first_warmup_rate = o.stage.compat;
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder, options);
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_mesh_autoencoder(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<MeshAutoencoderTrainOptions*>(values);
  return run_guarded([&] {
    model_of(asked);
    data_of(asked);
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
