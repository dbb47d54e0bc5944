// The finite scalar quantizer: every dimension is bounded and rounded to one of a few levels, so
// the codebook is their grid and needs neither a table nor a loss. Names, defaults and arithmetic
// are those of vector-quantize-pytorch 1.14.24, so weights go both ways.
//
//   Fsq quantizer({.levels = {8, 5, 5, 5}, .dim = 64});
//   Quantized result = quantizer->forward(features);      // [batch, 64, ...]
#pragma once

#include <millrace/training/models/quantizers/quantizer.h>
#include <millrace/training/models/quantizers/quantizer_options.h>

#include <cstdint>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

class FsqImpl : public torch::nn::Module {
 public:
  // Throws an Error of kind usage if the numbers do not fit each other.
  explicit FsqImpl(FsqOptions options);

  // The loss is always 0.
  Quantized forward(const torch::Tensor& features);
  // The features that stand for `indices`, which have the shape that forward() gave them.
  torch::Tensor decode(const torch::Tensor& indices);

 private:
  FsqOptions options_;
  torch::Tensor levels_, basis_;  // int32, [levels]; not part of the state, as in the package
  torch::nn::Linear project_in_{nullptr}, project_out_{nullptr};
};
TORCH_MODULE(Fsq);

}  // namespace millrace
