// How sharply feature vectors choose their lookup-free codes, and how evenly they use them all.
// Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

struct CodeEntropies {
  torch::Tensor per_sample;  // the mean entropy of each vector's distribution over the codes
  torch::Tensor batch;       // the entropy of the mean distribution
};

// Of `vectors` [count, bits] and the 2^bits codes of which every bit is +-scale; log p is not taken
// below that of 1e-5, as in vector-quantize-pytorch. Gives gradients. The table of vectors by codes
// is never there: see Note [factored entropies].
CodeEntropies code_entropies(const torch::Tensor& vectors, double scale,
                             double inverse_temperature);

}  // namespace millrace
