// Which optimizer, and its numbers (see optimizer.h), without LibTorch.
//
//   OptimizerOptions options{.kind = OptimizerKind::adamw, .lr = 3e-4, .weight_decay = 0.01};
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace millrace {

enum class OptimizerKind : std::uint8_t { adam, adamw, lion };

// From "adam", "adamw" or "lion"; throws an Error that names the three.
OptimizerKind optimizer_kind(std::string_view name);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double lr = 3e-4;
  std::array<double, 2> betas{0.9, 0.999};  // Lion's own default is 0.9, 0.99
  double eps = 1e-8;
  // AdamW and Lion: p *= 1 - lr * weight_decay before the step. Adam: added to the gradient.
  double weight_decay = 0;
  // Parameters of one dimension, such as biases and norms, do not decay: a second group.
  bool decay_matrices_only = true;
  // Takes the operations of torch.optim one by one, in its order, so that results are Python's to
  // the last bit; otherwise one fused kernel does them all.
  bool as_in_python = false;
  // clip() takes the norm of each group by itself, as some trainers in Python do.
  bool clip_each_group = false;
};

}  // namespace millrace
