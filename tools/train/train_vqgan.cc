// train_vqgan: trains the VQGAN-VAE of Muse on a folder of pictures.
#include "tools/train/gan_options.h"
#include "tools/train/vqgan_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_vqgan photos --dim 64 --image-size 128 --batch-size 8 --num-train-steps 50000
  train_vqgan photos --dim 32 --layers 3 --codebook-size 1024 --image-size 64 \
      --batch-size 8 --num-train-steps 2000                # a small model: minutes on a laptop
  train_vqgan --config results/config.toml --resume        # continue where it was stopped
  train_vqgan --config results/config.toml --resume --num-train-steps 90000
  torchrun --no-python --nproc-per-node 2 train_vqgan photos --dim 64 ...

Files in the results folder:
  <step>.png, <step>.ema.png        pictures and their reconstructions, side by side, by the model
                                    and by its moving average
  vae.<step>.pt, vae.<step>.ema.pt  weights, for VQGanVAE.load_state_dict in Python and for EMA's
  checkpoint.<steps>.pt             everything that --resume needs; Python reads it too
  metrics.jsonl, events.out.*       metrics; tensorboard --logdir results
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
The perceptual loss needs VGG16's weights: in Python,
  torch.save(torchvision.models.vgg16(weights="DEFAULT").state_dict(), "vgg16.pt")
)";

void add_model_options(const Options& options, VqganConfig& model) {
  Options group = options.group("Model");
  group.add("--dim", model.dim, "number of channels of the first layer, a multiple of 16")
      .required();
  group.add("--layers", model.layers,
            "number of layers; each halves height and width and doubles the channels");
  group.add("--codebook-size", model.codebook_size,
            "number of codes; a power of 2, unless --lookup-free-quantization is false");
  group.add("--channels", model.channels, "number of channels of a picture: 1 is grey, 3 is RGB")
      .one_of({1, 3});
  group.add("--discr-layers", model.discr_layers,
            "number of layers of the discriminator; each halves height and width");
  group.add("--encdec-layer-mults", model.layer_mults,
            "channels of each layer as a multiple of --dim; default 1 2 4 ...");
  group.add("--encdec-num-resnet-blocks", model.num_resnet_blocks,
            "number of residual blocks in the last layer, or one number per layer");
  group.add("--encdec-resnet-groups", model.resnet_groups,
            "number of groups of the group norms; divides --dim");
  group.add("--encdec-first-conv-kernel-size", model.first_conv_kernel_size,
            "kernel size of the first convolution, in pixels");
  group.add("--lookup-free-quantization", model.lookup_free_quantization,
            "code is the signs of the features (LFQ); false: nearest vector of a learned codebook");
}

void add_quantizer_options(const Options& options, VqganConfig& model) {
  Options group = options.group("Quantizer (lfq: lookup-free; vq: codebook)");
  auto& lfq = model.lfq;
  group.add("--lfq-entropy-loss-weight", lfq.entropy_loss_weight,
            "weight of the entropy loss: certain choices, evenly used codes");
  group.add("--lfq-diversity-gamma", lfq.diversity_gamma,
            "weight of even code usage within the entropy loss");
  group.add("--lfq-commitment-loss-weight", lfq.commitment_loss_weight,
            "weight of the commitment loss");
  group.add("--lfq-num-codebooks", lfq.num_codebooks,
            "number of codebooks: codes per position of the feature map");
  group.add("--lfq-codebook-scale", lfq.codebook_scale,
            "absolute value of each dimension of a code");
  group.add("--lfq-frac-per-sample-entropy", lfq.frac_per_sample_entropy,
            "fraction of positions that the entropy loss samples; less takes less memory");
  group.add("--lfq-use-code-agnostic-commit-loss", lfq.use_code_agnostic_commit_loss,
            "commitment loss of the features' magnitudes, whichever code is chosen");
  group.add("--lfq-projection-has-bias", lfq.projection_has_bias,
            "linear layers before and after the quantizer have a bias");
  group.add("--lfq-soft-clamp-input-value", lfq.soft_clamp_input_value,
            "bound of the features, by tanh; at least the codebook's scale; default: none");
  group.add("--lfq-cosine-sim-project-in", lfq.cosine_sim_project_in,
            "project features into the quantizer by cosine similarity");
  group.add("--lfq-cosine-sim-project-in-scale", lfq.cosine_sim_project_in_scale,
            "scale of that cosine projection; default: the codebook's scale");
  add_codebook_options(group, model.vq);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_vqgan",
                   "Trains a VQGAN-VAE on a folder of pictures: an encoder that turns a picture "
                   "into a small grid of codes, and a decoder that turns codes into a picture.",
                   examples);
  VqganTrainOptions values;
  const Options options = line.options();
  add_train_options(options, values.train);
  options.group("Data")
      .add("--image-size", values.image_size,
           "height and width of the square that pictures are resized and cropped to, in pixels")
      .required();
  add_gan_options(options,
                  {.l2_recon_loss = values.model.l2_recon_loss,
                   .use_vgg_and_gan = values.model.use_vgg_and_gan,
                   .use_hinge_loss = values.model.use_hinge_loss,
                   .stage = values.stage,
                   .weights = values.weights,
                   .compat = "compute as the Python trainer does: gradient penalty in every step, "
                             "operations in its order; slower"});
  add_model_options(options, values.model);
  add_quantizer_options(options, values.model);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_vqgan", options, &values); });
}
