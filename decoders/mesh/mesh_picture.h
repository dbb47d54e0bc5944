// Renders meshes for `inspect` and the mesh trainers: a z-buffer, flat shading, a fixed camera from
// the side and above, y upwards.
//
//   std::vector<float> vertices{0, 0, 0, 1, 0, 0, 0, 1, 0};
//   std::vector<std::int64_t> faces{0, 1, 2};
//   Array picture = draw_mesh(vertices, faces, {.side = 256});        // uint8 [256, 256, 3]
//   Array sheet = mesh_sheet({{triangles_of(vertices, faces)}});      // one row of one picture
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
  int supersample = 3;      // each pixel is the mean of supersample x supersample samples
  // true: the bounding box of the mesh fills the picture. false: the cube [-1, 1]^3 does, so that
  // pictures of several meshes can be compared.
  bool fit = false;
  bool edges = true;  // draw a thin dark border around triangles that are large enough
  std::array<std::uint8_t, 3> background{255, 255, 255};
  std::array<std::uint8_t, 3> colour{150, 190, 235};  // of a face that is turned to the light
};

// `vertices` [n, 3] and `faces` [m, 3] are contiguous. Faces with an index out of range (the
// padding of a batch) or a coordinate that is not finite are left out.
Array draw_mesh(std::span<const float> vertices, std::span<const std::int64_t> faces,
                const MeshPictureOptions& options = {});

// Renders triangles given by their corners: float32 [m, 3, 3]; m may be 0.
Array draw_triangles(const Array& corners, const MeshPictureOptions& options = {});
// The corners of the faces of a mesh, for draw_triangles() and mesh_sheet().
Array triangles_of(std::span<const float> vertices, std::span<const std::int64_t> faces);

// The inverse of triangles_of(): corners at exactly the same position become one vertex. Triangles
// with two corners at the same position, or with a coordinate that is not finite, are left out.
Mesh mesh_of_triangles(const Array& corners);

// One row of pictures for each row of triangles, e.g. real | reconstructed | generated. An Array
// without a shape leaves its tile blank; so does the end of a row that is shorter than others.
Array mesh_sheet(const std::vector<std::vector<Array>>& rows,
                 const MeshPictureOptions& options = {});

}  // namespace millrace
