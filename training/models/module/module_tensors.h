// The tensors of a module, with the names and in the order of PyTorch's state_dict().
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
// Parameters only, each once. A parameter that is registered twice has its first name.
NamedTensors parameter_tensors(const torch::nn::Module& module);

using ModulePointer = std::shared_ptr<torch::nn::Module>;

// A module that only adds a level to the names of its children, like a Sequential or a wrapper
// module in Python. It lets one C++ layer register its tensors under the package's nested names.
ModulePointer named(const std::vector<std::pair<std::string, ModulePointer>>& children);

}  // namespace millrace
