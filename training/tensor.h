// Arrays as tensors, without a copy. The tensor keeps the array's memory, and the loader sees that
// it is kept, so a tensor made from a batch stays what it is for as long as it lives.
//
//   for (const Batch& batch : loader) loss = model->forward(to_tensor(batch["image"]));
#pragma once

#include <millrace/pipeline/array.h>

#include <torch/types.h>

namespace millrace {

torch::ScalarType to_scalar_type(DType dtype);
torch::Tensor to_tensor(const Array& array);

}  // namespace millrace
