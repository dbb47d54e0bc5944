// Attention biases from a table with one row per distance; many pairs of positions share a
// distance. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

// `table`: [distances, heads]; `which`: int64 [batch, queries, keys], row numbers of the table.
// Returns [batch, heads, queries, keys]. The table's gradient is summed in the same order for any
// number of threads.
torch::Tensor look_up_bias(const torch::Tensor& table, const torch::Tensor& which);

}  // namespace millrace
