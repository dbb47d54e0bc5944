// Converts arrays to tensors without a copy, and tensors to arrays with one. A tensor shares
// ownership of the array's memory. The loader does not reuse the memory of a batch while a tensor
// made from it exists.
//
//   for (const Batch& batch : loader) use(model->reconstruct(to_tensor(batch["image"])));
//   Array pixels = to_array(picture.mul(255).round().to(torch::kUInt8));
#pragma once

#include <millrace/pipeline/data/array.h>

#include <torch/types.h>

namespace millrace {

torch::ScalarType to_scalar_type(DType dtype);
torch::Tensor to_tensor(const Array& array);
// Throws an Error of kind usage for a type that arrays do not support.
DType to_dtype(torch::ScalarType type);
// Returns a contiguous copy in host memory, with the same dtype and shape.
Array to_array(const torch::Tensor& tensor);

}  // namespace millrace
