#include "tools/train/gan_options.h"

namespace millrace {

void add_gan_options(const Options& options, const GanOptions& o) {
  Options losses = options.group("Losses");
  losses.add("--l2-recon-loss", o.l2_recon_loss,
             "reconstruction loss is the squared (L2) instead of the absolute (L1) error");
  losses.add("--use-vgg-and-gan", o.use_vgg_and_gan,
             "train with discriminator and perceptual loss; false: reconstruction loss only");
  losses.add("--use-hinge-loss", o.use_hinge_loss,
             "hinge loss for the discriminator; false: binary cross entropy");
  losses
      .add("--max-grad-norm", o.stage.max_grad_norm,
           "maximum gradient norm of the generator; 0: no clipping")
      .non_negative();
  losses
      .add("--discr-max-grad-norm", o.stage.discr_max_grad_norm,
           "maximum gradient norm of the discriminator; 0: no clipping")
      .non_negative();
  losses
      .add("--apply-grad-penalty-every", o.stage.apply_grad_penalty_every,
           "number of steps between gradient penalties of the discriminator; 0: never")
      .non_negative();
  losses
      .add("--adversarial-weight", o.stage.adversarial_weight,
           "weight of the adversarial loss relative to the perceptual loss, default 1; without "
           "--vgg relative to the reconstruction loss, default 0.1")
      .non_negative();
  losses
      .add("--discr-start-step", o.stage.discr_start_step,
           "step from which the adversarial loss trains the generator; before, only the "
           "discriminator learns from it")
      .non_negative();
  losses
      .add("--vgg", o.stage.vgg,
           "weights of VGG16 for the perceptual loss; default: no perceptual loss")
      .type_name("FILE");
  losses.flag("--compat", o.stage.compat, o.compat);
  options.group("Model")
      .add("--weights", o.weights,
           "weights to start from: a vae.<step>.pt, vae.<step>.ema.pt or checkpoint, of Millrace "
           "or of the Python trainer")
      .type_name("FILE");
}

void add_codebook_options(const Options& options, VectorQuantizerOptions& vq) {
  options.add("--vq-codebook-dim", vq.codebook_dim,
              "number of dimensions of a code; 0: as many as the encoder's channels");
  options.add("--vq-decay", vq.decay, "decay of the codebook's moving average per step");
  options.add("--vq-eps", vq.eps, "Laplace smoothing of the codes' usage counts");
  options.add("--vq-commitment-weight", vq.commitment_weight, "weight of the commitment loss");
  options.add("--vq-kmeans-init", vq.kmeans_init,
              "initialise the codebook by k-means over the first batch");
  options.add("--vq-kmeans-iters", vq.kmeans_iters, "number of k-means iterations");
  options.add("--vq-use-cosine-sim", vq.use_cosine_sim,
              "choose codes by cosine similarity; false: by Euclidean distance");
  options.add("--vq-threshold-ema-dead-code", vq.threshold_ema_dead_code,
              "average usage below which a code is replaced by a random feature; 0: never");
}

}  // namespace millrace
