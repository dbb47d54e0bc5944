// Conversions of tensors to pixels and triangles, for samples. Shared by the stages and `generate`.
#pragma once

#include <millrace/pipeline/data/array.h>

#include <torch/types.h>

namespace millrace {

// Converts values in [0, 1] to bytes of the same shape.
Array to_pixels(const torch::Tensor& pictures);

// Converts faces, given by their corners [faces, 3 or 4, 3], to triangles: float32 [triangles, 3,
// 3], as mesh_sheet() and mesh_of_triangles() take them. Skips faces whose `mask` [faces] is false.
Array face_triangles(const torch::Tensor& corners, const torch::Tensor& mask);

}  // namespace millrace
