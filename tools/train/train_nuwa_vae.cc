// train_nuwa_vae: trains NUWA's VQGAN-VAE on pictures or on the frames of clips.
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
  train_nuwa_vae --config results/config.toml --resume        # continue where it was stopped
  torchrun --no-python --nproc-per-node 2 train_nuwa_vae gifs --dim 64 ...

From a folder of clips (mp4 mov avi mkv webm gif) random frames are taken. An .npy file holds clips,
uint8 [clips, frames, height, width] or with channels before the height.

Files in the results folder:
  <step>.png, <step>.ema.png        pictures and their reconstructions, side by side, by the model
                                    and by its moving average
  vae.<step>.pt, vae.<step>.ema.pt  weights, for VQGanVAE.load_state_dict in Python and for EMA's,
                                    and for train_nuwa --vae
  checkpoint.<steps>.pt             everything that --resume needs; Python reads it too
  metrics.jsonl, events.out.*       metrics; tensorboard --logdir results
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
)";

void add_data_options(const Options& options, NuwaVaeTrainOptions& o) {
  Options data = options.group("Data");
  data.add("--image-size", o.model.image_size,
           "height and width of the square that pictures are resized and cropped to, in pixels")
      .required();
  data.add("--dataset-type", o.dataset_type,
           "kind of files to train on: images or videos; auto: videos if the folder has any")
      .one_of({"auto", "images", "videos"});
  data.add("--num-frames", o.num_frames,
           "number of consecutive frames taken from a random place of each clip")
      .positive();
  data.add("--flip", o.flip,
           "probability that a picture is mirrored; leave 0 for digits and letters")
      .range(0.0, 1.0);
  data.add("--random-rotate", o.random_rotate,
           "rotate clips of an .npy file by a random multiple of 90 degrees");
}

void add_model_options(const Options& options, NuwaVaeTrainOptions& o) {
  Options group = options.group("Model");
  NuwaVqganConfig& model = o.model;
  group.add("--dim", model.dim, "number of channels of the first layer, a multiple of 16")
      .required();
  group.add("--num-layers", model.num_layers,
            "number of layers; each halves height and width and doubles the channels");
  group.add("--channels", model.channels, "number of channels of a picture: 1 is grey, 3 is RGB")
      .one_of({1, 3});
  group.add("--layer-mults", model.layer_mults,
            "channels of each layer as a multiple of --dim; default 1 2 4 ...");
  group.add("--num-resnet-blocks", model.num_resnet_blocks,
            "number of residual blocks in the last layer, or one number per layer");
  group.add("--use-attn", o.use_attn,
            "attention in the last layer (true or false), or one value per layer");
  group.add("--attn-dim-head", model.attn_dim_head, "number of channels per attention head");
  group.add("--attn-heads", model.attn_heads, "number of attention heads per layer");
  group.add("--attn-dropout", model.attn_dropout, "dropout probability in attention layers")
      .range(0.0, 0.99);
  group.add("--resnet-groups", model.resnet_groups,
            "number of groups of the group norms; divides --dim");
  group.add("--first-conv-kernel-size", model.first_conv_kernel_size,
            "kernel size of the first convolution, in pixels");
  group.add("--vq-codebook-size", model.vq.codebook_size, "number of codes in the codebook");
  add_codebook_options(group, model.vq);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line(
      "train_nuwa_vae",
      "Trains the VQGAN-VAE of NUWA: an encoder that turns a frame into a small grid of "
      "codes, and a decoder that turns codes into a frame.",
      examples);
  NuwaVaeTrainOptions values;
  const Options options = line.options();
  add_train_options(options, values.train);
  add_data_options(options, values);
  add_model_options(options, values);
  add_gan_options(options,
                  {.l2_recon_loss = values.model.l2_recon_loss,
                   .use_vgg_and_gan = values.model.use_vgg_and_gan,
                   .use_hinge_loss = values.model.use_hinge_loss,
                   .stage = values.stage,
                   .weights = values.weights,
                   .compat = "compute as the Python trainer does: no gradient penalty, operations "
                             "in its order; slower"});
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_nuwa_vae", options, &values); });
}
