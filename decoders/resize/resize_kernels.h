// Private. The two passes of a resize, for whole rows; the best instruction set is chosen at run
// time. See Note [Weights in two halves].
#pragma once

#include "resize_weights.h"

#include <cstddef>
#include <cstdint>

namespace millrace::detail {

// How many rows narrow_rows takes at once: a load of weights serves them all.
constexpr int rows_at_once = 4;

// Columns: source rows, each from the plan's first source column on and readable for row_padding
// bytes after its end, to narrow rows, writable as far. `flip` mirrors them. Where there are fewer
// than four, the last one is given again.
void narrow_rows(const AxisWeights& columns, int channels, bool flip,
                 const std::uint8_t* const* source, std::uint8_t* const* narrow);

// Rows: one output row of `bytes` bytes out of its taps. All rows may be read, and `out` written,
// for row_padding bytes after their end. `taps` has an entry for each tap of the padded pairs.
void blend_rows(const AxisWeights& rows, const AxisWeights::Output& output,
                const std::uint8_t* const* taps, std::size_t bytes, std::uint8_t* out);

}  // namespace millrace::detail
