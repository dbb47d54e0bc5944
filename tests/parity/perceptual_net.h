// The perceptual network that a fixture was made with.
#pragma once

#include "tests/parity/fixture.h"

#include <millrace/training/models/vqgan/vqgan.h>

namespace millrace {

// VGG16, or the tiny stand-in for it, whichever stands under `prefix`, as "param/vgg."; empty if
// none does.
PerceptualNet perceptual_net(const Fixture& fixture, const std::string& prefix);

}  // namespace millrace
