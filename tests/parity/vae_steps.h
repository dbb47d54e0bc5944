// Repeats a fixture's optimizer steps of an image autoencoder and its discriminator.
#pragma once

#include "tests/parity/fixture.h"
#include "tests/parity/report.h"

#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/models/vqgan/picture_vae.h>

namespace millrace {

// The gradients of all parameters that have one, by parameter name.
NamedTensors gradients_of(const torch::nn::Module& model);

// Generator and discriminator step alternately, each with its own batch. The model must already
// have the fixture's weights. Does nothing if the fixture has no steps.
void check_vae_steps(const Fixture& fixture, Report& report, PictureVaeImpl& model,
                     std::shared_ptr<Draws> draws);

}  // namespace millrace
