#include "matrix_product.h"

#include <algorithm>

// Compiled once per instruction set by Highway's foreach_target; the best one is chosen at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "millrace/training/models/ops/matrix_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;

// A tile of sums stays in registers: 12 rows of 2 vectors with 32 registers, else 6 rows.
constexpr std::int64_t tile_rows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
constexpr std::int64_t lanes = hn::MaxLanes(Floats());
constexpr std::int64_t tile_columns = 2 * lanes;
// Depth of a block, so that a panel stays in the L1 or L2 cache.
constexpr std::int64_t depth_block = 256;

std::int64_t panel_count(const MatrixProduct& p) {
  return (p.columns + tile_columns - 1) / tile_columns;
}

std::int64_t floats_packed(const MatrixProduct& p) {
  return panel_count(p) * tile_columns * p.depth;
}

// Offset of a panel within one block of the depth.
HWY_INLINE std::int64_t packed_at(const MatrixProduct& p, std::int64_t first, std::int64_t block,
                                  std::int64_t panel) {
  return (first * panel_count(p) + panel * block) * tile_columns;
}

// Packs one block of the depth, all columns. Reads whole rows in order, because strided reads are
// slow.
HWY_INLINE void pack_rows(const MatrixProduct& p, std::int64_t first, std::int64_t block,
                          float* to) {
  for (std::int64_t k = 0; k < block; ++k) {
    const float* from = p.right.data + (first + k) * p.right.stride;
    std::int64_t column = 0;
    for (; column + tile_columns <= p.columns; column += tile_columns) {
      std::copy_n(from + column, tile_columns, to + column * block + k * tile_columns);
    }
    if (column == p.columns) continue;
    float* last = to + column * block + k * tile_columns;
    std::fill(std::copy(from + column, from + p.columns, last), last + tile_columns, 0.F);
  }
}

HWY_INLINE void pack_columns(const MatrixProduct& p, std::int64_t first, std::int64_t block,
                             float* to) {
  const std::int64_t whole = panel_count(p) * tile_columns;
  for (std::int64_t column = 0; column < whole; ++column) {
    float* at = to + column / tile_columns * tile_columns * block + column % tile_columns;
    const float* from = p.right.data + column * p.right.stride + first;
    for (std::int64_t k = 0; k < block; ++k) {
      at[k * tile_columns] = column < p.columns ? from[k] : 0.F;
    }
  }
}

void pack(const MatrixProduct& p, std::int64_t begin, std::int64_t end, float* packed) {
  for (std::int64_t first = begin * depth_block; first < std::min(end * depth_block, p.depth);
       first += depth_block) {
    const std::int64_t block = std::min(depth_block, p.depth - first);
    float* to = packed + packed_at(p, first, block, 0);
    if (p.right.transposed) {
      pack_columns(p, first, block, to);
    } else {
      pack_rows(p, first, block, to);
    }
  }
}

std::int64_t block_count(const MatrixProduct& p) {
  return (p.depth + depth_block - 1) / depth_block;
}

// A part of `left`: tile_rows rows and one block of the depth.
struct Strip {
  const float* data;
  std::int64_t stride;
};

struct Tile {
  Vector sums[tile_rows][2];
};

template <bool transposed>
HWY_INLINE void multiply_tile(const Strip& left, const float* right, std::int64_t depth,
                              Tile& tile) {
  const Floats floats;
  Vector sums[tile_rows][2];
  for (auto& row : sums) row[0] = row[1] = hn::Zero(floats);
  // One pointer per three rows: x86 addressing modes multiply a stride by 1 or 2 at no cost.
  constexpr std::int64_t pointers = tile_rows / 3;
  const float* rows[pointers];
  for (std::int64_t i = 0; i < pointers; ++i) {
    rows[i] = left.data + (transposed ? 3 * i : 3 * i * left.stride);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector b0 = hn::Load(floats, right), b1 = hn::Load(floats, right + lanes);
    right += tile_columns;
    for (std::int64_t i = 0; i < tile_rows; ++i) {
      const float* at = rows[i / 3] + (transposed ? i % 3 : i % 3 * left.stride);
      const Vector a = hn::Set(floats, *at);
      sums[i][0] = hn::MulAdd(a, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(a, b1, sums[i][1]);
    }
    for (auto& row : rows) row += transposed ? left.stride : 1;
  }
  for (std::int64_t i = 0; i < tile_rows; ++i) {
    tile.sums[i][0] = sums[i][0];
    tile.sums[i][1] = sums[i][1];
  }
}

// The destination of a tile, and its valid rows and columns.
struct Place {
  float* out;
  std::int64_t stride;
  std::int64_t rows, columns;
  const float* bias;  // null: no bias
  bool adding;
};

HWY_INLINE void store_whole(const Tile& tile, const Place& to) {
  const Floats floats;
  for (std::int64_t i = 0; i < tile_rows; ++i) {
    for (std::int64_t v = 0; v < 2; ++v) {
      float* out = to.out + i * to.stride + v * lanes;
      Vector sum = tile.sums[i][v];
      if (to.adding) sum = hn::Add(sum, hn::LoadU(floats, out));
      if (to.bias != nullptr) sum = hn::Add(sum, hn::LoadU(floats, to.bias + v * lanes));
      hn::StoreU(sum, floats, out);
    }
  }
}

HWY_INLINE void store_part(const Tile& tile, const Place& to) {
  const Floats floats;
  HWY_ALIGN float row[tile_columns];
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t v = 0; v < 2; ++v) hn::Store(tile.sums[i][v], floats, row + v * lanes);
    float* out = to.out + i * to.stride;
    for (std::int64_t j = 0; j < to.columns; ++j) {
      out[j] = row[j] + (to.adding ? out[j] : 0.F) + (to.bias != nullptr ? to.bias[j] : 0.F);
    }
  }
}

// Multiplies up to tile_rows rows with all columns.
HWY_INLINE void multiply_strip(const MatrixProduct& p, const float* packed, std::int64_t first,
                               std::int64_t block, std::int64_t row, const Strip& left,
                               std::int64_t rows) {
  const float* right = packed + packed_at(p, first, block, 0);
  for (std::int64_t panel = 0; panel < panel_count(p); ++panel) {
    const std::int64_t column = panel * tile_columns;
    Tile tile;
    if (p.left.transposed) {
      multiply_tile<true>(left, right + panel * block * tile_columns, block, tile);
    } else {
      multiply_tile<false>(left, right + panel * block * tile_columns, block, tile);
    }
    const Place to{p.out + row * p.columns + column,
                   p.columns,
                   rows,
                   std::min(tile_columns, p.columns - column),
                   first == 0 && p.bias != nullptr ? p.bias + column : nullptr,
                   first > 0};
    if (to.rows == tile_rows && to.columns == tile_columns) {
      store_whole(tile, to);
    } else {
      store_part(tile, to);
    }
  }
}

// If the stride maps columns to the same few cache lines, they are copied first, because every
// panel reads them again.
HWY_INLINE bool has_cache_conflicts(const MatrixView& left) {
  return left.transposed && left.stride % 512 == 0;
}

HWY_INLINE Strip copied(const Strip& left, std::int64_t block, float* room) {
  for (std::int64_t k = 0; k < block; ++k) {
    const float* from = left.data + k * left.stride;
    for (std::int64_t i = 0; i < tile_rows; ++i) room[k * tile_rows + i] = from[i];
  }
  return {room, tile_rows};
}

// Pads the last rows with zeros to a whole tile.
HWY_INLINE Strip zero_padded(const MatrixProduct& p, const Strip& left, std::int64_t rows,
                             std::int64_t block, float* room) {
  std::fill_n(room, tile_rows * block, 0.F);
  if (p.left.transposed) {
    for (std::int64_t k = 0; k < block; ++k) {
      std::copy_n(left.data + k * left.stride, rows, room + k * tile_rows);
    }
    return {room, tile_rows};
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(left.data + i * left.stride, block, room + i * block);
  }
  return {room, block};
}

void multiply(const MatrixProduct& p, const float* packed, std::int64_t begin, std::int64_t end) {
  HWY_ALIGN float room[tile_rows * depth_block];
  for (std::int64_t first = 0; first < p.depth; first += depth_block) {
    const std::int64_t block = std::min(depth_block, p.depth - first);
    for (std::int64_t row = begin; row < end; row += tile_rows) {
      const std::int64_t rows = std::min(tile_rows, end - row);
      Strip left{p.left.data + (p.left.transposed ? first * p.left.stride + row
                                                  : row * p.left.stride + first),
                 p.left.stride};
      if (rows < tile_rows) {
        left = zero_padded(p, left, rows, block, room);
      } else if (has_cache_conflicts(p.left)) {
        left = copied(left, block, room);
      }
      multiply_strip(p, packed, first, block, row, left, rows);
    }
  }
}

}  // namespace millrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(block_count);
HWY_EXPORT(floats_packed);
HWY_EXPORT(pack);
HWY_EXPORT(multiply);

std::int64_t depth_blocks(const MatrixProduct& product) {
  return HWY_DYNAMIC_DISPATCH(block_count)(product);
}

std::int64_t packed_size(const MatrixProduct& product) {
  return HWY_DYNAMIC_DISPATCH(floats_packed)(product);
}

void pack_right(const MatrixProduct& product, std::int64_t begin, std::int64_t end, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack)(product, begin, end, packed);
}

void multiply_rows(const MatrixProduct& product, const float* packed, std::int64_t begin,
                   std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(multiply)(product, packed, begin, end);
}

}  // namespace millrace
#endif
