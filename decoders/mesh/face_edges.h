// Which faces of a mesh touch: the graph that MeshGPT's encoder runs on. Time and memory are linear
// in the number of faces and pairs; there is never a matrix of faces by faces.
//
//   std::vector<std::array<std::int64_t, 2>> pairs;
//   Status status = face_edges(mesh.faces, {}, pairs);   // (0,0) (0,3) (1,1) (1,2) ...
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

struct FaceEdgeOptions {
  bool self_pairs = true;  // (i, i) for every face, as the Python package has them
  // An edge that k faces share gives k * k pairs, so a hostile mesh could ask for any number.
  std::int64_t max_pairs = 64'000'000;
  std::int64_t max_vertices = DecodeLimits{}.vertices;  // indices must be below
};

// Ordered pairs (i, j) of faces that share two or more different vertices, by i and then by j.
// Faces with a negative index are padding and have no pairs.
Status face_edges(std::span<const std::array<std::int64_t, 3>> faces,
                  const FaceEdgeOptions& options, std::vector<std::array<std::int64_t, 2>>& pairs);

}  // namespace millrace
