#include "gate_loop_kernel.h"

namespace millrace {

void gate_loop_forward(const GateLoopStrip& strip, const float* before, float* states, float* out) {
  float h[gate_loop_strip] = {};
  const std::int64_t width = strip.end - strip.first;
  if (before != nullptr) {
    for (std::int64_t c = 0; c < width; ++c) h[c] = before[strip.first + c];
  }
  for (std::int64_t t = 0; t < strip.length; ++t) {
    const std::int64_t at = t * strip.dim + strip.first;
    const float* __restrict q = strip.qkva + t * strip.dim * 3 + strip.first;
    const float* __restrict kv = q + strip.dim;
    const float* __restrict gate = strip.gates + at;
    float* __restrict state = states + at;
    float* __restrict result = out + at;
    for (std::int64_t c = 0; c < width; ++c) {
      h[c] = kv[c] + gate[c] * h[c];
      state[c] = h[c];
      result[c] = q[c] * h[c];
    }
  }
}

void gate_loop_backward(const GateLoopStrip& strip, const float* states, const float* of_out,
                        float* gradient) {
  static constexpr float nothing[gate_loop_strip] = {};
  float later[gate_loop_strip] = {};  // gradient of h from later tokens
  const std::int64_t width = strip.end - strip.first;
  for (std::int64_t t = strip.length - 1; t >= 0; --t) {
    const std::int64_t at = t * strip.dim + strip.first;
    const float* __restrict q = strip.qkva + t * strip.dim * 3 + strip.first;
    const float* __restrict gate = strip.gates + at;
    const float* __restrict given = of_out + at;
    const float* __restrict state = states + at;
    const float* __restrict before = t > 0 ? state - strip.dim : nothing;
    float* __restrict of_q = gradient + t * strip.dim * 3 + strip.first;
    float* __restrict of_kv = of_q + strip.dim;
    float* __restrict of_a = of_kv + strip.dim;
    for (std::int64_t c = 0; c < width; ++c) {
      const float all = later[c] + given[c] * q[c];
      of_q[c] = given[c] * state[c];
      of_kv[c] = all;
      of_a[c] = all * before[c] * gate[c] * (1 - gate[c]);
      later[c] = all * gate[c];
    }
  }
}

}  // namespace millrace
