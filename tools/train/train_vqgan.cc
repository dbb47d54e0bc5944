// Trains the VQGAN-VAE of Muse on a folder of pictures.
#include "tools/train/gan_options.h"
#include "tools/train/vqgan_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_vqgan photos --dim 64 --image-size 128 --batch-size 8 --num-train-steps 50000
  train_vqgan photos --dim 32 --layers 3 --codebook-size 1024 --image-size 64 \
      --batch-size 8 --num-train-steps 2000                # a small one: minutes on a laptop
  train_vqgan --config results/config.toml --resume        # go on where it was stopped
  train_vqgan --config results/config.toml --resume --num-train-steps 90000
  torchrun --no-python --nproc-per-node 2 train_vqgan photos --dim 64 ...

What it leaves in the results folder:
  <step>.png, <step>.ema.png        pictures beside their reconstructions, of the model and of its
                                    moving average
  vae.<step>.pt, vae.<step>.ema.pt  weights, for VQGanVAE.load_state_dict in Python and for EMA's
  checkpoint.<steps>.pt             all that --resume needs; Python reads it too
  metrics.jsonl, events.out.*       what was logged; tensorboard --logdir results
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
The perceptual loss needs VGG16's weights: in Python,
  torch.save(torchvision.models.vgg16(weights="DEFAULT").state_dict(), "vgg16.pt")
)";

void add_model_options(CLI::App& app, VqganConfig& model) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Model");
  };
  app.add_option("--dim", model.dim, "channels of the first layer, a multiple of 16")
      ->required()
      ->group("Model");
  add("--layers", model.layers, "each halves the sides of the picture and doubles the channels");
  add("--codebook-size", model.codebook_size,
      "how many codes there are; a power of 2, unless --lookup-free-quantization is false");
  add("--channels", model.channels, "of a picture: 1 is grey, 3 is colour")
      ->check(CLI::IsMember({1, 3}));
  add("--discr-layers", model.discr_layers, "of the discriminator; each halves the sides");
  add("--encdec-layer-mults", model.layer_mults, "channels of each layer, in dims; else 1 2 4 ...");
  add("--encdec-num-resnet-blocks", model.num_resnet_blocks, "in the last layer, or in each");
  add("--encdec-resnet-groups", model.resnet_groups, "of the norms; --dim is a multiple of it");
  add("--encdec-first-conv-kernel-size", model.first_conv_kernel_size, "of the first layer");
  add("--lookup-free-quantization", model.lookup_free_quantization,
      "a code is the signs of the features; false: the nearest of a learnt codebook");
}

void add_quantizer_options(CLI::App& app, VqganConfig& model) {
  const char* group = "Quantizer (lfq: lookup-free; vq: codebook)";
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, group);
  };
  auto& lfq = model.lfq;
  add("--lfq-entropy-loss-weight", lfq.entropy_loss_weight, "of clear choices and of variety");
  add("--lfq-diversity-gamma", lfq.diversity_gamma, "of variety among them");
  add("--lfq-commitment-loss-weight", lfq.commitment_loss_weight, "of features near their code");
  add("--lfq-num-codebooks", lfq.num_codebooks, "codes of a place");
  add("--lfq-codebook-scale", lfq.codebook_scale, "codes are plus or minus this");
  add("--lfq-frac-per-sample-entropy", lfq.frac_per_sample_entropy,
      "of the places that the entropies look at; less takes less memory");
  add("--lfq-use-code-agnostic-commit-loss", lfq.use_code_agnostic_commit_loss, "of magnitudes");
  add("--lfq-projection-has-bias", lfq.projection_has_bias, "from and to the encoder's channels");
  app.add_option("--lfq-soft-clamp-input-value", lfq.soft_clamp_input_value,
                 "bounds features by tanh; at least the codebook's scale")
      ->group(group);
  add("--lfq-cosine-sim-project-in", lfq.cosine_sim_project_in, "project by cosine similarity");
  app.add_option("--lfq-cosine-sim-project-in-scale", lfq.cosine_sim_project_in_scale,
                 "times this; by default the codebook's scale")
      ->group(group);
  add_codebook_options(app, model.vq, group);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_vqgan",
                   "Trains a VQGAN-VAE on a folder of pictures: an encoder that turns a picture "
                   "into a small grid of codes, and a decoder that turns codes into a picture.",
                   examples);
  VqganTrainOptions options;
  add_train_options(line.app(), options.train);
  line.app()
      .add_option("--image-size", options.image_size,
                  "the side of the square that pictures are cut to")
      ->required()
      ->group("Data");
  add_gan_options(line.app(), {.l2_recon_loss = options.model.l2_recon_loss,
                               .use_vgg_and_gan = options.model.use_vgg_and_gan,
                               .use_hinge_loss = options.model.use_hinge_loss,
                               .stage = options.stage,
                               .weights = options.weights,
                               .compat = "as the trainer in Python does it: the penalty in every "
                                         "step, sums in its order; slower"});
  add_model_options(line.app(), options.model);
  add_quantizer_options(line.app(), options.model);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_vqgan", line.app(), &options); });
}
