// Converts uint8 pixels to float: value * scale + shift for each channel, and HWC to CHW, in one
// pass. The loader does it on the device or, without a device, right after a sample is loaded. Both
// use the same arithmetic, with two roundings and no fused multiply-add, so every machine gives the
// same bits.
//
//   ToFloat unit = ToFloat::unit();  // to [0, 1], channels first
//   ToFloat imagenet = ToFloat::normalised({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F});
#pragma once

#include <millrace/pipeline/data/shape.h>

#include <array>
#include <cstdint>

#if defined(__CUDACC__)
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif

namespace millrace {

struct ToFloat {
  std::array<float, 4> scale{1, 1, 1, 1};
  std::array<float, 4> shift{0, 0, 0, 0};
  bool channels_first = true;  // [H, W, C] -> [C, H, W], [T, H, W, C] -> [C, T, H, W]

  // To [0, 1].
  static ToFloat unit() {
    constexpr float s = 1.0F / 255;
    return {.scale = {s, s, s, s}};
  }
  // (value / 255 - mean) / deviation
  static ToFloat normalised(std::array<float, 3> mean, std::array<float, 3> deviation) {
    ToFloat result;
    for (std::size_t c = 0; c < 3; ++c) {
      result.scale[c] = 1 / (255 * deviation[c]);
      result.shift[c] = -mean[c] / deviation[c];
    }
    return result;
  }
};

struct ToFloatElement {
  MILLRACE_HOST_DEVICE float operator()(std::uint8_t value, float scale, float shift) const {
#if defined(__CUDA_ARCH__)
    return __fadd_rn(__fmul_rn(static_cast<float>(value), scale), shift);
#else
    return static_cast<float>(value) * scale + shift;
#endif
  }
};

// The shape of a converted sample. Throws if the last axis is not 1 to 4 channels.
Shape to_float_shape(const ToFloat& conversion, const Shape& sample);
// Converts pixels x channels values with the widest vector instructions of the processor.
void to_float(const ToFloat& conversion, const std::uint8_t* from, std::int64_t pixels,
              int channels, float* to);

}  // namespace millrace
