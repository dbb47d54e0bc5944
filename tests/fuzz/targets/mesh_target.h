// What every mesh target does with its bytes: decode, with and without tidying, and check what the
// decoder promises about its result.
#pragma once

#include <millrace/decoders/mesh/face_edges.h>
#include <millrace/decoders/mesh/mesh.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

namespace millrace {

inline void fuzz_mesh(std::span<const std::uint8_t> data, MeshFormat hint) {
  static Mesh mesh;
  DecodeLimits limits{.vertices = 20'000, .faces = 20'000};
  MeshOptions plain{.hint = hint,
                    .merge_vertices = false,
                    .drop_degenerate_faces = false,
                    .drop_duplicate_faces = false,
                    .drop_unused_vertices = false,
                    .normalize = false,
                    .sort = false,
                    .limits = limits};
  bool readable = decode_mesh(std::as_bytes(data), plain, mesh).ok();
  if (!readable) return;
  if (mesh.vertices.size() > 20'000 || mesh.faces.size() > 20'000) std::abort();
  MeshOptions tidy{.hint = hint, .bins = 64, .limits = limits};
  if (!decode_mesh(std::as_bytes(data), tidy, mesh).ok()) return;
  for (const auto& vertex : mesh.vertices) {
    for (float coordinate : vertex) {
      if (!(std::abs(coordinate) <= 1)) std::abort();
    }
  }
  for (const auto& face : mesh.faces) {
    if (face[0] >= face[1] || face[0] >= face[2] || face[0] < 0) std::abort();
    if (std::max(face[1], face[2]) >= static_cast<std::int64_t>(mesh.vertices.size())) std::abort();
  }
  if (!std::is_sorted(mesh.faces.begin(), mesh.faces.end())) std::abort();
  static std::vector<std::array<std::int64_t, 2>> pairs;
  Status status = face_edges(mesh.faces, {.max_pairs = 1'000'000}, pairs);
  if (status.ok() && pairs.size() < mesh.faces.size()) std::abort();
}

}  // namespace millrace
