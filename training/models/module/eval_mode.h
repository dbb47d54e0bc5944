// RAII guard that puts a model into eval mode. Private to training/models.
#pragma once

#include <torch/nn/module.h>

namespace millrace {

// Restores training mode in the destructor, if the module was in it.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& module)
      : module_(module), was_training_(module.is_training()) {
    if (was_training_) module_.eval();
  }
  ~EvalMode() {
    if (was_training_) module_.train();
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

}  // namespace millrace
