// The tensors of a module under the names, and in the order, that Python's state_dict() has.
#pragma once

#include <millrace/training/value.h>

#include <torch/nn/module.h>

namespace millrace {

// Parameters and buffers.
NamedTensors state_tensors(const torch::nn::Module& module);
// Parameters alone, each once: what a module has twice goes by its first name.
NamedTensors parameter_tensors(const torch::nn::Module& module);

}  // namespace millrace
