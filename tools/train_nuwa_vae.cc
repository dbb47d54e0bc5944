// Trains NUWA's VQGAN-VAE on pictures or on the frames of clips.
#include "tools/nuwa_vae_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_nuwa_vae gifs --dim 64 --image-size 64 --channels 1 --batch-size 8 --num-train-steps 20000
  train_nuwa_vae moving.npy --dim 32 --image-size 64 --channels 1 --num-layers 3 \
      --use-vgg-and-gan false --batch-size 16 --num-train-steps 2000
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
  VectorQuantizerOptions& vq = model.vq;
  add("--vq-codebook-size", vq.codebook_size, "how many codes there are");
  add("--vq-codebook-dim", vq.codebook_dim, "of a code");
  add("--vq-decay", vq.decay, "of the codebook's moving average");
  add("--vq-eps", vq.eps, "keeps codes that nobody uses finite");
  add("--vq-commitment-weight", vq.commitment_weight, "of features near their code");
  add("--vq-kmeans-init", vq.kmeans_init, "start from the first batch's means");
  add("--vq-kmeans-iters", vq.kmeans_iters, "so many rounds");
  add("--vq-use-cosine-sim", vq.use_cosine_sim, "false: Euclidean distance");
  add("--vq-threshold-ema-dead-code", vq.threshold_ema_dead_code,
      "codes that are used less are replaced by features; 0: never");
  app.add_option("--weights", o.weights,
                 "start from these: a vae.<step>.pt, vae.<step>.ema.pt or checkpoint, of here or "
                 "of the trainer in Python")
      ->type_name("FILE")
      ->group("Model");
}

void add_loss_options(CLI::App& app, NuwaVaeTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Losses");
  };
  add("--l2-recon-loss", o.model.l2_recon_loss, "mean square instead of mean difference");
  add("--use-vgg-and-gan", o.model.use_vgg_and_gan, "false: reconstruction only");
  add("--use-hinge-loss", o.model.use_hinge_loss, "false: binary cross entropy");
  add("--max-grad-norm", o.stage.max_grad_norm, "clips the generator's gradients; 0: not")
      ->check(CLI::NonNegativeNumber);
  add("--discr-max-grad-norm", o.stage.discr_max_grad_norm, "and the discriminator's")
      ->check(CLI::NonNegativeNumber);
  add("--apply-grad-penalty-every", o.stage.apply_grad_penalty_every,
      "steps: the discriminator's gradient penalty; 0: never")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--adversarial-weight", o.stage.adversarial_weight,
                 "of the discriminator's word beside the perceptual loss; by default 1, and 0.1 "
                 "beside the reconstruction if there is no --vgg")
      ->check(CLI::NonNegativeNumber)
      ->group("Losses");
  add("--discr-start-step", o.stage.discr_start_step,
      "until then the discriminator learns, but has no word")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--vgg", o.stage.vgg, "VGG16's weights, for the perceptual loss; else without")
      ->type_name("FILE")
      ->group("Losses");
  app.add_flag("--compat", o.stage.compat,
               "as the trainer in Python does it: no penalty, sums in its order; slower")
      ->group("Losses");
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
  add_loss_options(line.app(), options);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_nuwa_vae", line.app(), &options); });
}
