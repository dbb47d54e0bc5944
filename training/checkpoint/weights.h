// Finds a model's weights in a file that a trainer saved, here or in Python: a bare state_dict, a
// checkpoint with its "model", or a moving average with its "ema_model.*", which is preferred.
//
//   torch::nn::Linear model(3, 2);
//   millrace::load_weights("vae.1000.ema.pt", {{"weight", model->weight}, {"bias", model->bias}});
#pragma once

#include <millrace/training/checkpoint/tensors.h>

#include <filesystem>

namespace millrace {

// Returns the state_dict in the value.
Dict weights_in(const Value& saved);
// Copies the weights of a file. Throws an Error that names the first tensor that does not fit.
void load_weights(const std::filesystem::path& path, const NamedTensors& to);

}  // namespace millrace
