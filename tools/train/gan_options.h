// Options that the trainers of both VQGAN-VAEs (Muse's and NUWA's) share: losses, discriminator and
// codebook.
#pragma once

#include "tools/cli/options.h"

#include <millrace/training/models/quantizers/quantizer_options.h>
#include <millrace/training/models/vqgan/vqgan_stage_options.h>

#include <string>

namespace millrace {

// References to the variables that the options set.
struct GanOptions {
  bool& l2_recon_loss;
  bool& use_vgg_and_gan;
  bool& use_hinge_loss;
  VqganStageOptions& stage;
  std::string& weights;
  const char* compat;  // help text of --compat
};

void add_gan_options(const Options& options, const GanOptions& values);
// All but the codebook's size, whose flag has another name in each trainer.
void add_codebook_options(const Options& options, VectorQuantizerOptions& vq);

}  // namespace millrace
