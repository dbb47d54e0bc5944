// The three sums of nearby_attention.h for one head of one row of a batch, without LibTorch: this
// is where the time goes, and it is compiled for that. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// Where things lie: tokens have `stride` floats between them, and so have the places that they see.
struct NearbySizes {
  std::int64_t tokens = 0, seen = 0, channels = 0;
  std::int64_t stride = 0;              // heads * channels
  std::int64_t weights_stride = 0;      // heads * seen
  const std::int64_t* table = nullptr;  // [tokens, seen]: a place, or -1 for none
};

// w = x . y
void nearby_products(const NearbySizes& s, const float* x, const float* y, float where_none,
                     float* w);
// x += sum of w y, over all that a token sees
void nearby_sums_by_token(const NearbySizes& s, const float* w, const float* y, float* x);
// y += sum of w x, over all tokens that see it
void nearby_sums_by_place(const NearbySizes& s, const float* w, const float* x, float* y);

}  // namespace millrace
