// Intermediate values of the mesh autoencoder. Private to training/models.
#pragma once

#include "mesh_features.h"
#include "mesh_graph.h"

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>

#include <vector>

namespace millrace {

// A batch without padding: the faces of all meshes are concatenated, and so are the pairs.
struct MeshAutoencoderImpl::Graph {
  torch::Tensor faces;                               // [batch, faces, corners]
  torch::Tensor mask;                                // [batch, faces]
  torch::Tensor pairs;                               // [pairs, 2], face numbers within their mesh
  std::vector<std::int64_t> first_face, first_pair;  // offset of each mesh, and the total
  FaceFeatures features;

  torch::Tensor rows(const torch::Tensor& of_faces, std::int64_t begin, std::int64_t count) const {
    const std::int64_t first = first_face[static_cast<std::size_t>(begin)];
    return of_faces.narrow(0, first, first_face[static_cast<std::size_t>(begin + count)] - first);
  }
  // Pairs [pairs, 2] of `count` meshes from `begin`, with face numbers relative to the first face
  // of mesh `begin`.
  torch::Tensor pairs_of(std::int64_t begin, std::int64_t count) const;
  RowLists neighbours(std::int64_t begin, std::int64_t count) const;
};

struct MeshAutoencoderImpl::Encoded {
  torch::Tensor features;  // [batch, faces, corners * dim_codebook]
  torch::Tensor codes;     // [batch, faces * corners, quantizers]
  torch::Tensor losses;    // [quantizers]
};

}  // namespace millrace
