// Products of matrices of 32-bit floats, for linear layers. Arithmetic alone, without LibTorch,
// compiled for each instruction set. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// A matrix, or with `transposed` what lies there column by column.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;  // floats from one row (transposed: column) to the next
  bool transposed = false;
};

// out[rows, columns] = left[rows, depth] * right[depth, columns] + bias[columns]
//
// Each sum is taken in the same order whatever the other rows and columns are, so that threads may
// share the rows in any way:
//
//   pack_right(product, 0, depth_blocks(product), packed);  // packed_size(product) floats
//   multiply_rows(product, packed, begin, end);            // any rows, at once
struct MatrixProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  MatrixView left, right;
  const float* bias = nullptr;  // or null: zeros
  float* out = nullptr;         // dense
};

// `right` is packed in blocks of its depth, which are apart from each other.
std::int64_t depth_blocks(const MatrixProduct& product);
std::int64_t packed_size(const MatrixProduct& product);
void pack_right(const MatrixProduct& product, std::int64_t begin, std::int64_t end, float* packed);
void multiply_rows(const MatrixProduct& product, const float* packed, std::int64_t begin,
                   std::int64_t end);

// Rows that are worked on together; the last of `begin` to `end` may be fewer.
constexpr std::int64_t product_rows_at_once = 12;

}  // namespace millrace
