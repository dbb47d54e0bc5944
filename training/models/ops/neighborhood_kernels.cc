#include "neighborhood_kernels.h"

namespace millrace {

namespace {

float dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t lanes = 8;  // independent sums that the compiler can vectorize
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (float lane : sums) sum += lane;
  return sum;
}

void add(float* to, float weight, const float* from, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) to[c] += weight * from[c];
}

// Calls body(token, position, column of the table) for all entries that are not -1.
template <class Body>
void for_seen(const NearbySizes& s, const Body& body) {
  for (std::int64_t i = 0; i < s.tokens; ++i) {
    for (std::int64_t j = 0; j < s.seen; ++j) {
      const std::int64_t place = s.table[i * s.seen + j];
      if (place >= 0) body(i, place, j);
    }
  }
}

}  // namespace

void nearby_products(const NearbySizes& s, const float* x, const float* y, float fill, float* w) {
  for (std::int64_t i = 0; i < s.tokens; ++i) {
    for (std::int64_t j = 0; j < s.seen; ++j) w[i * s.weights_stride + j] = fill;
  }
  for_seen(s, [&](std::int64_t i, std::int64_t place, std::int64_t j) {
    w[i * s.weights_stride + j] = dot(x + i * s.stride, y + place * s.stride, s.channels);
  });
}

void nearby_sums_by_token(const NearbySizes& s, const float* w, const float* y, float* x) {
  for_seen(s, [&](std::int64_t i, std::int64_t place, std::int64_t j) {
    add(x + i * s.stride, w[i * s.weights_stride + j], y + place * s.stride, s.channels);
  });
}

void nearby_sums_by_place(const NearbySizes& s, const float* w, const float* x, float* y) {
  for_seen(s, [&](std::int64_t i, std::int64_t place, std::int64_t j) {
    add(y + place * s.stride, w[i * s.weights_stride + j], x + i * s.stride, s.channels);
  });
}

}  // namespace millrace
