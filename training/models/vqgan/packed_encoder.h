// A faster image encoder for inference on the CPU. Private to training/models.
#pragma once

#include <millrace/training/models/quantizers/quantizer.h>

#include <functional>
#include <vector>

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

namespace millrace {

// Encodes pictures to the same codes as the layers and the quantizer, but faster: convolution
// weights are packed once instead of at every call, activations are fused into the convolution
// before them, and tensors are channels-last. This changes the order of floating-point sums. If any
// vector lies so close to the boundary between two codes that rounding could change its code, the
// whole batch is encoded again by the original layers. Weights are packed at the first call for
// each input size; later training is not seen.
class PackedEncoder {
 public:
  using Quantize = std::function<ChosenCodes(const torch::Tensor& features)>;
  PackedEncoder(const torch::nn::Sequential& layers, Quantize quantize);

  // Call without gradients and with the model in eval mode. Thread-safe.
  torch::Tensor operator()(const torch::Tensor& pictures) const;

 private:
  using Step = std::function<torch::Tensor(const torch::Tensor&)>;
  torch::nn::Sequential layers_;
  std::vector<Step> steps_;
  Quantize quantize_;
};

}  // namespace millrace
