// Converts between torch::Tensor and the values of a checkpoint, without copying memory.
//
//   using namespace millrace;
//   torch::Tensor weight = torch::ones({2, 3});
//   write_checkpoint("a.pt", Dict{{"model", to_value(NamedTensors{{"weight", weight}})}});
//   const Value state = read_checkpoint("a.pt");
//   torch::Tensor read = as_tensor(state["model"]["weight"]);
//   copy_tensors(state["model"], {{"weight", weight}}, "a.pt");
#pragma once

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/value.h>

#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace millrace {

// Named tensors, as in a state_dict().
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// The value shares the tensor's memory and keeps it alive. A tensor on a GPU is copied to the host.
// Throws an Error if the tensor is undefined, is not strided or has a type that cannot be saved.
Value to_value(const torch::Tensor& tensor);
// A dictionary.
Value to_value(const NamedTensors& tensors);

// A tensor over the value's memory, on the CPU. Throws an Error if the value is no tensor.
torch::Tensor as_tensor(const Value& value);
inline bool is_tensor(const Value& value) {
  return value.is<StoredTensor>();
}

// Copies each tensor of a state_dict into the one of the same name. Throws before anything is
// changed, naming the first tensor that is missing, left over or of another shape.
void copy_tensors(const Value& from, const NamedTensors& to, const std::string& source);
// The same from tensors on any device.
void copy_tensors(const NamedTensors& from, const NamedTensors& to, const std::string& source);

}  // namespace millrace
