// The recurrence of a gate loop over one row, for a strip of channels. Plain C++ without LibTorch,
// in its own file, because only the kernels are compiled with -O3. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// Number of channels per strip.
constexpr std::int64_t gate_loop_strip = 64;

// One row of tensors [rows, length, dim], restricted to channels [first, end), at most one strip.
struct GateLoopStrip {
  std::int64_t length = 0, dim = 0, first = 0, end = 0;
  const float* qkva = nullptr;   // [length, 3 * dim]
  const float* gates = nullptr;  // [length, dim]: sigmoid(a)
};

// h = gate * h + kv, out = q * h. `before` [dim]: the initial h, or null: 0.
void gate_loop_forward(const GateLoopStrip& strip, const float* before, float* states, float* out);
// `gradient` [length, 3 * dim]: gradients of q, kv and a, given `of_out`, the gradient of out.
void gate_loop_backward(const GateLoopStrip& strip, const float* states, const float* of_out,
                        float* gradient);

}  // namespace millrace
