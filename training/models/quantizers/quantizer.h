// The result types of all quantizers.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace millrace {

struct Quantized {
  torch::Tensor features;  // shape of the input
  torch::Tensor indices;   // int64, one per feature vector (and per codebook, if there are several)
  torch::Tensor loss;      // scalar; 0 in eval mode or without gradients
  // Parts of the loss, before weighting; undefined in eval mode.
  torch::Tensor per_sample_entropy, batch_entropy, commitment;
};

// Codes of feature vectors, with margins. A margin is the distance to the boundary to the next
// code, relative to the vector's length.
struct ChosenCodes {
  torch::Tensor indices;  // see Quantized
  torch::Tensor margins;  // same shape
};

// Equal to Python's nn.Linear; LibTorch's module adds the bias in a different order.
inline torch::Tensor project(const torch::nn::Linear& linear, const torch::Tensor& x) {
  return torch::linear(x, linear->weight, linear->bias);
}

}  // namespace millrace
