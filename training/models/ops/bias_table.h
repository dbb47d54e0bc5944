// What is added to the logits of an attention, out of a table with a row for each distance: many
// pairs of places have one distance. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

// `table`: [distances, heads]; `which`: int64 [batch, to, from], rows of it. Gives [batch, heads,
// to, from]. The gradient of the table is summed in the same order with any number of threads.
torch::Tensor look_up_bias(const torch::Tensor& table, const torch::Tensor& which);

}  // namespace millrace
