// Products of float32 matrices, for linear layers. Plain C++ without LibTorch, compiled for each
// instruction set. Private to training/models.
#pragma once

#include <cstdint>

namespace millrace {

// A row-major matrix; with `transposed`, a column-major one.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;  // floats from one row (transposed: column) to the next
  bool transposed = false;
};

// out[rows, columns] = left[rows, depth] * right[depth, columns] + bias[columns]
//
// The order of each sum does not depend on the other rows and columns, so threads can split the
// rows in any way:
//
//   pack_right(product, 0, depth_blocks(product), packed);  // packed_size(product) floats
//   multiply_rows(product, packed, begin, end);            // any rows, at once
struct MatrixProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  MatrixView left, right;
  const float* bias = nullptr;  // null: no bias
  float* out = nullptr;         // contiguous, row-major
};

// `right` is packed in independent blocks of its depth.
std::int64_t depth_blocks(const MatrixProduct& product);
std::int64_t packed_size(const MatrixProduct& product);
void pack_right(const MatrixProduct& product, std::int64_t begin, std::int64_t end, float* packed);
void multiply_rows(const MatrixProduct& product, const float* packed, std::int64_t begin,
                   std::int64_t end);

// Rows per tile; the last tile of `begin` to `end` may have fewer.
constexpr std::int64_t product_rows_at_once = 12;

}  // namespace millrace
