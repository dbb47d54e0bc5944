// The recurrence of a gate loop along one row, some channels at a time, without LibTorch: this file
// alone of the models is worth optimising. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// Channels that are worked on at once.
constexpr std::int64_t gate_loop_strip = 64;

// One row of tensors [rows, length, dim], and channels [first, end) of it, at most a strip.
struct GateLoopStrip {
  std::int64_t length = 0, dim = 0, first = 0, end = 0;
  const float* qkva = nullptr;   // [length, 3 * dim]
  const float* gates = nullptr;  // [length, dim]: the sigmoid of a
};

// h = gate * h + kv, out = q * h. `before` [dim]: h before the first, or null: 0.
void gate_loop_forward(const GateLoopStrip& strip, const float* before, float* states, float* out);
// `gradient` [length, 3 * dim]: of q, kv and a, for that of out.
void gate_loop_backward(const GateLoopStrip& strip, const float* states, const float* of_out,
                        float* gradient);

}  // namespace millrace
