// The three sums of neighborhood_attention.cc for one head of one row. Plain C++ without LibTorch,
// in its own file, because only the kernels are compiled with -O3. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// Sizes and strides. Tokens and positions are `stride` floats apart.
struct NearbySizes {
  std::int64_t tokens = 0, seen = 0, channels = 0;
  std::int64_t stride = 0;              // heads * channels
  std::int64_t weights_stride = 0;      // heads * seen
  const std::int64_t* table = nullptr;  // [tokens, seen]: a position, or -1 for none
};

// w = x . y
void nearby_products(const NearbySizes& s, const float* x, const float* y, float fill, float* w);
// x += sum of w y, over the positions that a token attends to
void nearby_sums_by_token(const NearbySizes& s, const float* w, const float* y, float* x);
// y += sum of w x, over the tokens that attend to a position
void nearby_sums_by_place(const NearbySizes& s, const float* w, const float* x, float* y);

}  // namespace millrace
