// Finds the faces of a mesh that share an edge: the graph that MeshGPT's encoder runs on. Time and
// memory are linear in the number of faces and pairs; no faces x faces matrix is made.
//
//   std::vector<std::array<std::int64_t, 3>> faces{{0, 1, 2}, {2, 1, 3}};
//   std::vector<std::array<std::int64_t, 2>> pairs;
//   Status status = face_edges(faces, {}, pairs);  // (0,0) (0,1) (1,0) (1,1)
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

struct FaceEdgeOptions {
  bool self_pairs = true;  // add (i, i) for every face, as the Python package does
  // An edge that k faces share gives k * k pairs, so a hostile mesh could need any amount of
  // memory.
  std::int64_t max_pairs = 64'000'000;
  std::int64_t max_vertices = DecodeLimits{}.vertices;  // indices must be below this
};

// Returns the pairs (i, j) of faces that share two or more different vertices, sorted by i, then j.
// Faces with a negative index are padding and have no pairs.
Status face_edges(std::span<const std::array<std::int64_t, 3>> faces,
                  const FaceEdgeOptions& options, std::vector<std::array<std::int64_t, 2>>& pairs);

}  // namespace millrace
