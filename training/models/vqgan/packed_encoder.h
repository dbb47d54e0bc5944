// The encoder of pictures of a model that is only asked, on the CPU. Private to training/models.
#pragma once

#include <millrace/training/models/quantizers/quantizer.h>

#include <functional>
#include <vector>

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

namespace millrace {

// Pictures to codes, the same that the layers and the quantizer give, sooner: weights of
// convolutions are brought into the order of their kernels once instead of at every call,
// activations are part of the convolution before them, and pictures have their channels last. Such
// sums are rounded in another order; so where a code is chosen by so little that this could matter,
// all pictures go through the layers as they are. What they learn afterwards does not count.
class PackedEncoder {
 public:
  using Quantize = std::function<ChosenCodes(const torch::Tensor& features)>;
  PackedEncoder(const torch::nn::Sequential& layers, Quantize quantize);

  // Without gradients, in eval mode; from several threads at once.
  torch::Tensor operator()(const torch::Tensor& pictures) const;

 private:
  using Step = std::function<torch::Tensor(const torch::Tensor&)>;
  torch::nn::Sequential layers_;
  std::vector<Step> steps_;
  Quantize quantize_;
};

}  // namespace millrace
