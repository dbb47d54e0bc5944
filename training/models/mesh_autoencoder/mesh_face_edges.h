// The pairs of faces that touch, for meshes that come without. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

// `faces`: int64 [batch, faces, 3 or 4], filled up with pad_id, as are the pairs: [batch, pairs,
// 2], ordered. Faces touch that share two vertices, as a face does with itself.
torch::Tensor find_face_edges(const torch::Tensor& faces, std::int64_t pad_id);

}  // namespace millrace
