// The entropy losses of the lookup-free quantizer: each vector should choose its code clearly, and
// all codes should be used evenly. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

struct CodeEntropies {
  torch::Tensor per_sample;  // mean over the vectors of the entropy of p(code)
  torch::Tensor batch;       // entropy of the mean of p(code)
};

// `vectors` is [count, bits]; each bit of the 2^bits codes is +-scale. As in
// vector-quantize-pytorch, log p is clamped at log 1e-5. Differentiable. Never allocates a table of
// vectors by codes: see Note [factored entropies].
CodeEntropies code_entropies(const torch::Tensor& vectors, double scale,
                             double inverse_temperature);

}  // namespace millrace
