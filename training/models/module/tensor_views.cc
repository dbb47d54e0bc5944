#include "tensor_views.h"

#include <millrace/training/device/torch_api.h>

#include <cstring>

namespace millrace {

Array to_pixels(const torch::Tensor& pictures) {
  const torch::Tensor bytes = pictures.mul(255).round().to(torch::kCPU, torch::kUInt8).contiguous();
  Shape shape;
  for (std::int64_t size : bytes.sizes()) shape.push_back(size);
  Array array = Array::empty(DType::uint8, shape);
  std::memcpy(array.data(), bytes.data_ptr(), array.bytes());
  return array;
}

Array face_triangles(const torch::Tensor& corners, const torch::Tensor& mask) {
  torch::Tensor faces = corners.index({mask}).to(torch::kCPU, torch::kFloat32);
  if (faces.size(1) == 4) {
    const auto half = [&](std::int64_t b, std::int64_t c) {
      return torch::stack({faces.select(1, 0), faces.select(1, b), faces.select(1, c)}, 1);
    };
    faces = torch::cat({half(1, 2), half(2, 3)});
  }
  faces = faces.contiguous();
  Array triangles = Array::empty(DType::float32, {faces.size(0), 3, 3});
  if (triangles.bytes() > 0)
    std::memcpy(triangles.data(), faces.const_data_ptr(), triangles.bytes());
  return triangles;
}

}  // namespace millrace
