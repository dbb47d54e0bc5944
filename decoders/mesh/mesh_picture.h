// Meshes as pictures: a z-buffer, flat shading, a fixed eye to the side and above, y upwards. What
// `inspect` and the trainers of mesh models show; nothing more than that is wanted of it.
//
//   Array picture = draw_mesh(vertices, faces, {.side = 256});       // uint8 [256, 256, 3]
//   Array sheet = mesh_sheet({{real, made}, {real2, made2}});        // soups [m, 3, 3], a row each
#pragma once

#include <millrace/decoders/mesh/mesh.h>
#include <millrace/pipeline/data/array.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

struct MeshPictureOptions {
  std::int64_t side = 192;  // pixels
  int supersample = 3;      // each pixel is the mean of so many by so many
  // The mesh's own box fills the picture. Otherwise the cube [-1, 1]^3 does, so that pictures of
  // several meshes can be compared.
  bool fit = false;
  bool edges = true;  // triangles have a thin dark border, where they are large enough for one
  std::array<std::uint8_t, 3> background{255, 255, 255};
  std::array<std::uint8_t, 3> colour{150, 190, 235};  // of a face that looks at the light
};

// `vertices` [n, 3] and `faces` [m, 3], each in one piece. Faces with an index that is none (the
// padding of a batch) and those with a coordinate that is not finite are left out.
Array draw_mesh(std::span<const float> vertices, std::span<const std::int64_t> faces,
                const MeshPictureOptions& options = {});

// Triangles by their corners: float32 [m, 3, 3], also with no triangle at all.
Array draw_triangles(const Array& corners, const MeshPictureOptions& options = {});
// The corners of a mesh's faces, as draw_triangles and mesh_sheet take them.
Array triangles_of(std::span<const float> vertices, std::span<const std::int64_t> faces);

// The other way: corners in exactly the same place are one vertex, and triangles with two corners
// in one place are none. What is not finite is left out.
Mesh mesh_of_triangles(const Array& corners);

// One row of pictures for each row of triangles, e.g. real | reconstructed | generated. An Array
// without a shape leaves its place empty, as does a row that is shorter than others.
Array mesh_sheet(const std::vector<std::vector<Array>>& rows,
                 const MeshPictureOptions& options = {});

}  // namespace millrace
