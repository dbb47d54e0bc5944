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
  std::array<double, 2> betas{0.9, 0.999};  // lion-pytorch's default is 0.9, 0.99
  double eps = 1e-8;
  // AdamW and Lion: p *= 1 - lr * weight_decay before the step. Adam: grad += weight_decay * p.
  double weight_decay = 0;
  // No weight decay for parameters with fewer than two dimensions (biases, norms): they form a
  // second parameter group.
  bool decay_matrices_only = true;
  // Reference path: the unfused operations of torch.optim in its order, with bit-identical results.
  // The default is one fused kernel.
  bool as_in_python = false;
  // clip() clips each group by its own norm, as some Python trainers do.
  bool clip_each_group = false;
};

}  // namespace millrace
