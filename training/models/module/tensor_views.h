// What stages share with each other and with generate: tensors as things to look at.
#pragma once

#include <millrace/pipeline/data/array.h>

#include <torch/types.h>

namespace millrace {

// Values in [0, 1] as bytes, of the same shape.
Array to_pixels(const torch::Tensor& pictures);

// Faces by their corners [faces, 3 or 4, 3], without those that `mask` [faces] says are none, as
// triangles: float32 [triangles, 3, 3], as mesh_sheet() and mesh_of_triangles() take them.
Array face_triangles(const torch::Tensor& corners, const torch::Tensor& mask);

}  // namespace millrace
