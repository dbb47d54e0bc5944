// The perceptual network that a fixture was made with.
#pragma once

#include "tests/parity/fixture.h"

#include <millrace/training/models/vqgan/vqgan.h>

namespace millrace {

// Builds VGG16, or its tiny replacement, from the fixture's weights under `prefix` ("param/vgg.").
// Returns an empty function if there are none.
PerceptualNet perceptual_net(const Fixture& fixture, const std::string& prefix);

}  // namespace millrace
