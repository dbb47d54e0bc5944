// A model's weights out of whatever a trainer saved, here or in Python: a bare state_dict, a
// checkpoint with its "model", or a moving average with its "ema_model.*", which wins.
//
//   load_weights("vae.1000.ema.pt", state_tensors(*model));
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <filesystem>

namespace millrace {

// The state_dict in it.
Dict weights_in(const Value& saved);
// Copies them. Throws an Error that names the first tensor that does not fit.
void load_weights(const std::filesystem::path& path, const NamedTensors& to);

}  // namespace millrace
