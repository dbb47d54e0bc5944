#include "stage_parts.h"

#include <cstring>

#include <torch/torch.h>

namespace millrace {

Array to_pixels(const torch::Tensor& pictures) {
  const torch::Tensor bytes = pictures.mul(255).round().to(torch::kCPU, torch::kUInt8).contiguous();
  Shape shape;
  for (std::int64_t size : bytes.sizes()) shape.push_back(size);
  Array array = Array::empty(DType::uint8, shape);
  std::memcpy(array.data(), bytes.data_ptr(), array.bytes());
  return array;
}

}  // namespace millrace
