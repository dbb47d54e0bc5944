// Private: the two passes of a resize, for whole rows. The best instruction set is chosen at run
// time. See Note [Weights in two halves].
#pragma once

#include "resize_weights.h"

#include <cstddef>
#include <cstdint>

namespace millrace::detail {

// Number of rows that narrow_rows() processes at once, so that each weight is loaded once for all.
constexpr int rows_at_once = 4;

// Columns: resizes source rows to narrow rows. Source rows start at the first source column of the
// plan. All rows have row_padding bytes after their end, which are read or written too. `flip`
// flips the result. With fewer than four rows, pass the last one several times.
void narrow_rows(const AxisWeights& columns, int channels, bool flip,
                 const std::uint8_t* const* source, std::uint8_t* const* narrow);

// Rows: computes one output row of `bytes` bytes from its taps. Reads and writes row_padding bytes
// after the end of the rows. `taps` has an entry for each tap of the padded pairs.
void blend_rows(const AxisWeights& rows, const AxisWeights::Output& output,
                const std::uint8_t* const* taps, std::size_t bytes, std::uint8_t* out);

}  // namespace millrace::detail
