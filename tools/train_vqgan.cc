// Trains the VQGAN-VAE of Muse on a folder of pictures.
#include "train_options.h"

#include <millrace/datasets/image_folder.h>
#include <millrace/pipeline/error.h>
#include <millrace/pipeline/loader.h>
#include <millrace/pipeline/log.h>
#include <millrace/pipeline/subset.h>
#include <millrace/training/scheduler.h>
#include <millrace/training/stages/vqgan_stage.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <c10/util/StringUtil.h>
#include <torch/torch.h>

namespace millrace {
namespace {

struct Options {
  TrainOptions train;
  VqganConfig model{.dim = 0};
  VqganStageOptions stage;
  std::int64_t image_size = 0;
  double lr = 3e-4;
  double weight_decay = 0;
  std::string optimizer = "adam";
};

void add_model_options(CLI::App& app, Options& o) {
  const std::string group = "Model";
  auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->capture_default_str()->group(group);
  };
  add("--dim", o.model.dim, "channels of the first layer, a multiple of 16")->required();
  add("--channels", o.model.channels, "of a picture: 1 or 3");
  add("--layers", o.model.layers, "each halves the sides");
  add("--codebook-size", o.model.codebook_size, "a power of 2 for the lookup-free quantizer");
  add("--discr-layers", o.model.discr_layers, "of the discriminator");
  add("--l2-recon-loss", o.model.l2_recon_loss, "mean square instead of mean difference");
  add("--use-hinge-loss", o.model.use_hinge_loss, "false: binary cross entropy");
  add("--use-vgg-and-gan", o.model.use_vgg_and_gan, "false: reconstruction only");
  add("--lookup-free-quantization", o.model.lookup_free_quantization, "false: a codebook");
  add("--encdec-layer-mults", o.model.layer_mults, "channels of each layer, in dims");
  add("--encdec-num-resnet-blocks", o.model.num_resnet_blocks, "in the last layer, or in each");
  add("--encdec-resnet-groups", o.model.resnet_groups, "of the norms");
  add("--encdec-first-conv-kernel-size", o.model.first_conv_kernel_size, "odd");
  add("--lfq-diversity-gamma", o.model.lfq.diversity_gamma, "weight of using all codes");
  add("--lfq-entropy-loss-weight", o.model.lfq.entropy_loss_weight, "");
  add("--lfq-commitment-loss-weight", o.model.lfq.commitment_loss_weight, "");
  add("--vq-codebook-dim", o.model.vq.codebook_dim, "of a code");
  add("--vq-decay", o.model.vq.decay, "of the codebook's moving average");
  add("--vq-commitment-weight", o.model.vq.commitment_weight, "");
  add("--vq-kmeans-init", o.model.vq.kmeans_init, "start from the first batch's means");
  add("--vq-use-cosine-sim", o.model.vq.use_cosine_sim, "false: Euclidean distance");
}

void add_stage_options(CLI::App& app, Options& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->capture_default_str();
  };
  add("--image-size", o.image_size, "the side of the square that pictures are cut to")->required();
  add("--lr", o.lr, "learning rate of both optimizers");
  add("--optimizer", o.optimizer, "adam, adamw or lion");
  add("--weight-decay", o.weight_decay, "of parameters with 2 and more dimensions");
  add("--max-grad-norm", o.stage.max_grad_norm, "of the generator; 0: not clipped");
  add("--discr-max-grad-norm", o.stage.discr_max_grad_norm, "of the discriminator");
  add("--apply-grad-penalty-every", o.stage.apply_grad_penalty_every, "steps");
  add("--vgg", o.stage.vgg, "VGG16's weights, a .pt file with torchvision's names");
  app.add_flag("--compat", o.stage.compat, "keep the faults of the trainer in Python");
}

// All that can be known to be wrong before anything is read or written.
void check_options(const Options& o) {
  o.model.check();
  auto refuse = [](const std::string& why) { throw Error(why).kind(ErrorKind::usage); };
  if (o.image_size % o.model.divisor() != 0 || o.image_size < o.model.smallest_side()) {
    refuse(c10::str("--image-size must be a multiple of ", o.model.divisor(), " and at least ",
                    o.model.smallest_side(), " for ", o.model.layers, " layers and ",
                    o.model.discr_layers, " discr-layers, but is ", o.image_size));
  }
  if (o.stage.apply_grad_penalty_every < 1) refuse("--apply-grad-penalty-every must be at least 1");
}

int train(CLI::App& app, Options o, const Place& place) {
  o.stage.optimizer.kind = optimizer_kind(o.optimizer);
  o.stage.optimizer.lr = o.lr;
  o.stage.optimizer.weight_decay = o.weight_decay;
  if (o.stage.optimizer.kind == OptimizerKind::lion) o.stage.optimizer.betas = {0.9, 0.99};
  o.stage.device = place.device();

  const int channels = static_cast<int>(o.model.channels);
  auto pictures = [&](double flip) {
    return ImageFolder(o.train.folder, {.size = o.image_size, .channels = channels, .flip = flip});
  };
  const ImageFolder augmented = pictures(0.5), plain = pictures(0);
  check_sizes(o.train, augmented.size());
  const RunFolder folder = open_run_folder(o.train, place, app.config_to_str(true, true));
  TrainingData data(o.train, place, augmented, plain, {.to_float = {{"image", ToFloat::unit()}}});
  VqganStage stage(o.model, o.stage);
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, place));
  return run(app, o.train, place, folder, scheduler);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  CLI::App app("Trains a VQGAN-VAE on a folder of pictures.");
  millrace::Options options;
  app.footer(
      "\nExamples:\n"
      "  train_vqgan photos --dim 64 --image-size 128 --batch-size 8 --num-train-steps 50000\n"
      "  train_vqgan --config results/config.toml --resume\n"
      "  torchrun --no-python --nproc-per-node 2 train_vqgan photos --dim 64 ...\n");
  millrace::add_train_options(app, options.train);
  millrace::add_stage_options(app, options);
  millrace::add_model_options(app, options);
  return millrace::main_of(app, argc, argv, [&] {
    millrace::check_options(options);
    return millrace::run_in_place(options.train, [&](const millrace::Place& place) {
      return millrace::train(app, options, place);
    });
  });
}
