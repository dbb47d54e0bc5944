// Runs train_video_tokenizer: makes data set, model and stage from its options.
#include "tools/train/run/train_run.h"
#include "tools/train/video_tokenizer_options.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_stage.h>

#include <c10/util/StringUtil.h>

namespace millrace {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(why).kind(ErrorKind::usage);
}

std::array<std::int64_t, 3> kernel(const std::vector<std::int64_t>& sizes, const char* flag) {
  if (sizes.size() == 1) return {sizes[0], sizes[0], sizes[0]};
  if (sizes.size() != 3) refuse(c10::str(flag, " is one number or three, not ", sizes.size()));
  return {sizes[0], sizes[1], sizes[2]};
}

VideoTokenizerConfig model_of(const VideoTokenizerTrainOptions& o) {
  VideoTokenizerConfig model = o.model;
  model.layers = parse_video_layers(o.layers);
  model.residual_conv_kernel_size = kernel(o.residual_kernel, "--residual-conv-kernel-size");
  model.input_conv_kernel_size = kernel(o.input_kernel, "--input-conv-kernel-size");
  model.output_conv_kernel_size = kernel(o.output_kernel, "--output-conv-kernel-size");
  if (o.max_dim > 0) model.max_dim = o.max_dim;
  model.discr_kwargs = o.discr;
  for (std::int64_t scale : o.multiscale_scales) {
    model.multiscale_discrs.push_back(o.multiscale);
    model.multiscale_discrs.back().scale = scale;
  }
  model.compat = o.stage.compat;
  model.check();
  return model;
}

// Checks the options before anything is read or written.
void check_options(const VideoTokenizerTrainOptions& o, const VideoTokenizerConfig& model) {
  if (o.dataset_type != "images" && (o.num_frames - 1) % model.time_factor() != 0) {
    const std::int64_t below = (o.num_frames - 1) / model.time_factor() * model.time_factor() + 1;
    refuse(c10::str("--num-frames, less the first, must be a multiple of ", model.time_factor(),
                    " for these layers, but is ", o.num_frames, "; take ", below, " or ",
                    below + model.time_factor()));
  }
}

ShortClip short_clip(const std::string& name) {
  if (name == "black") return ShortClip::black;
  if (name == "loop") return ShortClip::loop;
  return name == "error" ? ShortClip::error : ShortClip::repeat_last;
}

// The data set with and without augmentation.
struct Files {
  AnyDataset augmented, plain;
};

Files files_of(const VideoTokenizerTrainOptions& o, const VideoTokenizerConfig& model) {
  const int channels = static_cast<int>(model.channels);
  if (o.dataset_type == "images") {
    auto pictures = [&](double flip) {
      return ImageFolder(o.train.folder,
                         {.size = model.image_size, .channels = channels, .flip = flip});
    };
    return {pictures(0.5), pictures(0)};
  }
  auto clips = [&](FrameChoice choice) {
    return VideoFolder(o.train.folder, {.frames = o.num_frames,
                                        .size = model.image_size,
                                        .choice = choice,
                                        .stride = o.frame_stride,
                                        .channels = channels,
                                        .short_clip = short_clip(o.short_clips),
                                        .pictures = o.dataset_type == "mixed"});
  };
  return {clips(FrameChoice::random_window), clips(FrameChoice::first)};
}

int train(const Options& flags, VideoTokenizerTrainOptions& o, const ProcessContext& context) {
  const VideoTokenizerConfig model = model_of(o);
  check_options(o, model);
  const bool pictures = o.dataset_type == "images";
  o.stage.optimizer = optimizer_options(o.train);
  o.stage.device = context.device();
  o.stage.validate_every_step = o.train.save_results_every;
  o.stage.seed = o.train.seed;
  o.stage.sample_average = o.train.use_ema;
  o.stage.field = pictures ? "image" : "video";
  if (pictures) o.stage.valid_field.clear();
  const Files files = files_of(o, model);
  check_sizes(o.train, files.augmented->size());
  VideoTokenizerStage stage(model, o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  TrainingData data(o.train, context, files.augmented, files.plain,
                    {.to_float = {{o.stage.field, ToFloat::unit()}}});
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, context));
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_video_tokenizer(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<VideoTokenizerTrainOptions*>(values);
  return run_guarded([&] {
    model_of(asked);
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
