// Optimizer steps of an autoencoder of pictures against its discriminator, as a fixture has them.
#pragma once

#include "tests/parity/fixture.h"
#include "tests/parity/report.h"

#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/models/vqgan/picture_vae.h>

namespace millrace {

// The parameters that have gradients, and these.
NamedTensors gradients_of(const torch::nn::Module& model);

// Generator and discriminator take turns, each with a batch of pictures of its own. The model has
// the fixture's weights. Does nothing if the fixture has no steps.
void check_vae_steps(const Fixture& fixture, Report& report, PictureVaeImpl& model,
                     std::shared_ptr<Draws> draws);

}  // namespace millrace
