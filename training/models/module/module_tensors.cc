#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>

#include <set>

namespace millrace {

namespace {

void collect(const torch::nn::Module& module, const std::string& prefix, NamedTensors& tensors) {
  auto add = [&](const auto& items) {
    for (const auto& item : items) {
      if (item.value().defined()) tensors.emplace_back(prefix + item.key(), item.value());
    }
  };
  add(module.named_parameters(/*recurse=*/false));
  add(module.named_buffers(/*recurse=*/false));
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", tensors);
  }
}

class Names : public torch::nn::Module {
 public:
  explicit Names(const std::vector<std::pair<std::string, ModulePointer>>& children) {
    for (const auto& [name, child] : children) register_module(name, child);
  }
};

}  // namespace

ModulePointer named(const std::vector<std::pair<std::string, ModulePointer>>& children) {
  return std::make_shared<Names>(children);
}

NamedTensors state_tensors(const torch::nn::Module& module) {
  NamedTensors tensors;
  collect(module, "", tensors);
  return tensors;
}

NamedTensors parameter_tensors(const torch::nn::Module& module) {
  NamedTensors tensors;
  std::set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) {
      tensors.emplace_back(item.key(), item.value());
    }
  }
  return tensors;
}

}  // namespace millrace
