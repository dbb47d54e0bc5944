// Trains NUWA's VQGAN-VAE on pictures or on the frames of clips.
#include "tools/train/gan_options.h"
#include "tools/train/nuwa_vae_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_nuwa_vae gifs --dim 64 --image-size 64 --channels 1 --batch-size 8 --num-train-steps 20000
  train_nuwa_vae moving.npy --dim 32 --image-size 24 --channels 1 --num-layers 2 --use-attn false \
      --use-vgg-and-gan false --l2-recon-loss true --vq-codebook-size 256 --vq-codebook-dim 64 \
      --vq-threshold-ema-dead-code 0.5 --batch-size 4 --lr 3e-3 --num-train-steps 600
  train_nuwa_vae photos --dim 64 --image-size 128 --flip 0.5 --batch-size 8 --num-train-steps 50000
  train_nuwa_vae --config results/config.toml --resume        # go on where it was stopped
  torchrun --no-python --nproc-per-node 2 train_nuwa_vae gifs --dim 64 ...

A folder of clips (mp4 mov avi mkv webm gif) gives random frames of them; an .npy file holds clips,
uint8 [clips, frames, height, width] or with channels before the height.

What it leaves in the results folder:
  <step>.png, <step>.ema.png        pictures beside their reconstructions, of the model and of its
                                    moving average
  vae.<step>.pt, vae.<step>.ema.pt  weights, for VQGanVAE.load_state_dict in Python and for EMA's,
                                    and for train_nuwa --vae
  checkpoint.<steps>.pt             all that --resume needs; Python reads it too
  metrics.jsonl, events.out.*       what was logged; tensorboard --logdir results
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
)";

void add_data_options(CLI::App& app, NuwaVaeTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  app.add_option("--image-size", o.model.image_size,
                 "the side of the square that pictures are cut to")
      ->required()
      ->group("Data");
  add("--dataset-type", o.dataset_type, "images or videos; auto: clips if the folder has any")
      ->check(CLI::IsMember({"auto", "images", "videos"}));
  add("--num-frames", o.num_frames, "of a clip: a random window, each frame a picture")
      ->check(CLI::PositiveNumber);
  add("--flip", o.flip, "how often pictures are mirrored; digits and letters mind it")
      ->check(CLI::Range(0.0, 1.0));
  add("--random-rotate", o.random_rotate, "an .npy: by 0, 90, 180 or 270 degrees");
}

void add_model_options(CLI::App& app, NuwaVaeTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Model");
  };
  NuwaVqganConfig& model = o.model;
  app.add_option("--dim", model.dim, "channels of the first layer, a multiple of 16")
      ->required()
      ->group("Model");
  add("--num-layers", model.num_layers,
      "each halves the sides of the picture and doubles the channels");
  add("--channels", model.channels, "of a picture: 1 is grey, 3 is colour")
      ->check(CLI::IsMember({1, 3}));
  add("--layer-mults", model.layer_mults, "channels of each layer, in dims; else 1 2 4 ...");
  add("--num-resnet-blocks", model.num_resnet_blocks, "in the last layer, or in each");
  add("--use-attn", o.use_attn, "in the last layer, or in each");
  add("--attn-dim-head", model.attn_dim_head, "channels of a head of attention");
  add("--attn-heads", model.attn_heads, "how many");
  add("--attn-dropout", model.attn_dropout, "of attention")->check(CLI::Range(0.0, 0.99));
  add("--resnet-groups", model.resnet_groups, "of the norms; --dim is a multiple of it");
  add("--first-conv-kernel-size", model.first_conv_kernel_size, "of the first layer");
  add("--vq-codebook-size", model.vq.codebook_size, "how many codes there are");
  add_codebook_options(app, model.vq, "Model");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_nuwa_vae",
                   "Trains the VQGAN-VAE that NUWA sees videos through: an encoder that turns a "
                   "frame into a small grid of codes, and a decoder that turns codes into a frame.",
                   examples);
  NuwaVaeTrainOptions options;
  add_train_options(line.app(), options.train);
  add_data_options(line.app(), options);
  add_model_options(line.app(), options);
  add_gan_options(
      line.app(),
      {.l2_recon_loss = options.model.l2_recon_loss,
       .use_vgg_and_gan = options.model.use_vgg_and_gan,
       .use_hinge_loss = options.model.use_hinge_loss,
       .stage = options.stage,
       .weights = options.weights,
       .compat = "as the trainer in Python does it: no penalty, sums in its order; slower"});
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_nuwa_vae", line.app(), &options); });
}
