// The tensors of a module under the names, and in the order, that Python's state_dict() has.
#pragma once

#include <millrace/training/checkpoint/tensors.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace millrace {

// Parameters and buffers.
NamedTensors state_tensors(const torch::nn::Module& module);
// Parameters alone, each once: what a module has twice goes by its first name.
NamedTensors parameter_tensors(const torch::nn::Module& module);

using ModulePointer = std::shared_ptr<torch::nn::Module>;

// A module that only names its children, as a Sequential or a wrapper does in Python: layers here
// are whole, but their tensors have Python's names.
ModulePointer named(const std::vector<std::pair<std::string, ModulePointer>>& children);

}  // namespace millrace
