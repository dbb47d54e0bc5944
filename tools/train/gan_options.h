// What the trainers of both VQGAN-VAEs, Muse's and NUWA's, have in common on their command lines.
#pragma once

#include "tools/cli/command_line.h"

#include <millrace/training/models/quantizers/vector_quantizer.h>
#include <millrace/training/models/vqgan/vqgan_stage.h>

#include <string>

namespace millrace {

// Where the values go.
struct GanOptions {
  bool& l2_recon_loss;
  bool& use_vgg_and_gan;
  bool& use_hinge_loss;
  VqganStageOptions& stage;
  std::string& weights;
  const char* compat;  // what --compat does
};

void add_gan_options(CLI::App& app, const GanOptions& options);
// All but how many codes there are, which Muse's calls otherwise.
void add_codebook_options(CLI::App& app, VectorQuantizerOptions& vq, const char* group);

}  // namespace millrace
