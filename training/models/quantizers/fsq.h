// Finite scalar quantization (FSQ): each dimension is bounded and rounded to one of a few levels.
// The codebook is the grid of all levels, so it needs no table and no loss. Names, defaults and
// arithmetic are those of vector-quantize-pytorch 1.14.24; weights can be exchanged with it.
//
//   Fsq quantizer(FsqOptions{.levels = {8, 5, 5, 5}, .dim = 64});
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
  // Throws an Error of kind usage if the options are inconsistent.
  explicit FsqImpl(FsqOptions options);

  // The loss is always 0.
  Quantized forward(const torch::Tensor& features);
  // Features of the codes `indices`, which have the shape that forward() returned.
  torch::Tensor decode(const torch::Tensor& indices);

 private:
  FsqOptions options_;
  torch::Tensor levels_, basis_;  // int32, [levels]; not in the state_dict, as in the package
  torch::nn::Linear project_in_{nullptr}, project_out_{nullptr};
};
TORCH_MODULE(Fsq);

}  // namespace millrace
