// What all quantizers give: the features as codes, which codes, and a loss that trains them.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace millrace {

struct Quantized {
  torch::Tensor features;  // of the input's shape
  torch::Tensor indices;   // int64, one per feature vector (and per codebook, if there are several)
  torch::Tensor loss;      // a scalar; 0 outside training and where no gradients are kept
  // Parts of the loss, before their weights; undefined outside training.
  torch::Tensor per_sample_entropy, batch_entropy, commitment;
};

// Which codes stand for feature vectors, and how clearly: by how much of its length a vector would
// have to be moved for another code.
struct ChosenCodes {
  torch::Tensor indices;  // as in Quantized
  torch::Tensor margins;  // of the same shape
};

// Python's linear layer; LibTorch's module adds the bias in another order.
inline torch::Tensor project(const torch::nn::Linear& linear, const torch::Tensor& x) {
  return torch::linear(x, linear->weight, linear->bias);
}

}  // namespace millrace
