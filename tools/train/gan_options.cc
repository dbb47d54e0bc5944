#include "tools/train/gan_options.h"

namespace millrace {

void add_gan_options(CLI::App& app, const GanOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Losses");
  };
  add("--l2-recon-loss", o.l2_recon_loss, "mean square instead of mean difference");
  add("--use-vgg-and-gan", o.use_vgg_and_gan, "false: reconstruction only");
  add("--use-hinge-loss", o.use_hinge_loss, "false: binary cross entropy");
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
  app.add_flag("--compat", o.stage.compat, o.compat)->group("Losses");
  app.add_option("--weights", o.weights,
                 "start from these: a vae.<step>.pt, vae.<step>.ema.pt or checkpoint, of here or "
                 "of the trainer in Python")
      ->type_name("FILE")
      ->group("Model");
}

void add_codebook_options(CLI::App& app, VectorQuantizerOptions& vq, const char* group) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, group);
  };
  add("--vq-codebook-dim", vq.codebook_dim, "of a code");
  add("--vq-decay", vq.decay, "of the codebook's moving average");
  add("--vq-eps", vq.eps, "keeps codes that nobody uses finite");
  add("--vq-commitment-weight", vq.commitment_weight, "of features near their code");
  add("--vq-kmeans-init", vq.kmeans_init, "start from the first batch's means");
  add("--vq-kmeans-iters", vq.kmeans_iters, "so many rounds");
  add("--vq-use-cosine-sim", vq.use_cosine_sim, "false: Euclidean distance");
  add("--vq-threshold-ema-dead-code", vq.threshold_ema_dead_code,
      "codes that are used less are replaced by features; 0: never");
}

}  // namespace millrace
