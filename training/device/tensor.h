// Arrays as tensors, without a copy. The tensor keeps the array's memory, and the loader sees that
// it is kept, so a tensor made from a batch stays what it is for as long as it lives. And tensors
// as arrays, which are copies.
//
//   for (const Batch& batch : loader) use(model->reconstruct(to_tensor(batch["image"])));
//   Array pixels = to_array(picture.mul(255).round().to(torch::kUInt8));
#pragma once

#include <millrace/pipeline/data/array.h>

#include <torch/types.h>

namespace millrace {

torch::ScalarType to_scalar_type(DType dtype);
torch::Tensor to_tensor(const Array& array);
// Throws an Error of kind usage for a type that no array has.
DType to_dtype(torch::ScalarType type);
// Of the same type and shape, dense and on the CPU.
Array to_array(const torch::Tensor& tensor);

}  // namespace millrace
