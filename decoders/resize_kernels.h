// Private. The two passes of a resize, for whole rows; the best instruction set is chosen at run
// time. See Note [Weights in two halves].
#pragma once

#include "resize_weights.h"

#include <cstddef>
#include <cstdint>

namespace millrace {

// How many rows narrow_rows takes at once: a load of weights serves them all.
constexpr int rows_at_once = 4;

// Columns: `count` (1 to 4) source rows, each from the plan's first source column on and readable
// for row_padding bytes after its end, to as many narrow rows. `flip` mirrors them.
void narrow_rows(const AxisWeights& columns, int channels, bool flip,
                 const std::uint8_t* const* source, int count, std::uint8_t* const* narrow);

// Rows: one output row of `bytes` bytes out of its taps. All rows may be read, and `out` written,
// for row_padding bytes after their end. `taps` has an entry for each tap of the padded pairs.
void blend_rows(const AxisWeights& rows, const AxisWeights::Output& output,
                const std::uint8_t* const* taps, std::size_t bytes, std::uint8_t* out);

}  // namespace millrace
