// Finds the adjacent faces of meshes whose batch has no face_edges. Private to training/models.
#pragma once

#include <torch/types.h>

namespace millrace {

// `faces`: int64 [batch, faces, 3 or 4], padded with pad_id. Returns sorted pairs [batch, pairs,
// 2], padded with pad_id. Two faces are adjacent if they share two vertices; a face is adjacent to
// itself.
torch::Tensor find_face_edges(const torch::Tensor& faces, std::int64_t pad_id);

}  // namespace millrace
