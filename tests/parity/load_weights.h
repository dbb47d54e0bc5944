// Copies a fixture's parameters and buffers into a model.
#pragma once

#include "tests/parity/fixture.h"

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>

#include <string>

namespace millrace {

// `perceptual`: name prefix of the perceptual network, which is not part of our models.
inline void load_weights(const Fixture& fixture, torch::nn::Module& model,
                         const std::string& perceptual) {
  NamedTensors parameters = parameter_tensors(model);
  Dict wanted;
  for (const auto& [name, tensor] : fixture.with("param/")) {
    if (!name.starts_with(perceptual)) wanted.set(name, to_value(tensor));
  }
  copy_tensors(wanted, parameters, "the fixture");
  torch::NoGradGuard no_grad;
  for (auto& item : model.named_buffers()) {
    if (fixture.has("buffer/" + item.key())) {
      item.value().copy_(fixture.tensor("buffer/" + item.key()));
    }
  }
}

}  // namespace millrace
