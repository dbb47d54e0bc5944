// Reads mesh files as triangles: OBJ, PLY (ascii, binary of both byte orders), STL (ascii, binary),
// OFF and glTF/GLB. The readers are our own and safe for hostile files. By default the result is
// cleaned, scaled and sorted in MeshGPT's order.
//
//   Mesh mesh;  // keep it for many files: its memory is reused
//   Status status = decode_mesh(bytes, {.hint = mesh_format_of("chair.obj"), .bins = 128}, mesh);
//   std::size_t faces = mesh.faces.size();
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace millrace {

enum class MeshFormat { unknown, obj, ply, stl, off, gltf };

struct MeshOptions {
  // The format by file name (see mesh_format_of). Used only if the content is ambiguous.
  MeshFormat hint = MeshFormat::unknown;
  // The folder from which a glTF file may load its external buffers; empty: they are refused.
  std::filesystem::path folder{};
  bool merge_vertices = true;         // vertices at exactly the same position become one
  bool drop_degenerate_faces = true;  // faces with two corners at the same position
  bool drop_duplicate_faces = true;   // the same three vertices in any order; the first is kept
  bool drop_unused_vertices = true;   // vertices that no face uses
  bool normalize = true;  // centre of the bounding box to 0, its longest side to [-1, 1]
  // MeshGPT's order: vertices sorted by z, then y, then x; each face rotated so that its lowest
  // index comes first; faces sorted by their indices.
  bool sort = true;
  // Number of bins over [-1, 1]. Coordinates are rounded to the centres of bins, as MeshGPT's
  // autoencoder discretises them, and the mesh is cleaned again. 0: no rounding.
  int bins = 0;
  DecodeLimits limits{};
};

// What the file contained and what was changed.
struct MeshCounts {
  std::int64_t file_vertices = 0;   // in the file, instances of a glTF scene included
  std::int64_t file_faces = 0;      // triangles, before any was dropped
  std::int64_t polygons = 0;        // faces with more than three corners, which were triangulated
  std::int64_t other_elements = 0;  // points and lines, which are ignored
  std::int64_t merged_vertices = 0;
  std::int64_t unused_vertices = 0;
  std::int64_t degenerate_faces = 0;
  std::int64_t duplicate_faces = 0;
};

struct Mesh {
  std::vector<std::array<float, 3>> vertices;      // [n, 3]
  std::vector<std::array<std::int64_t, 3>> faces;  // [m, 3], into vertices
  MeshFormat format = MeshFormat::unknown;
  MeshCounts counts;
};

// Convex polygons become fans around their first corner; concave polygons are cut by ear clipping
// (up to 512 corners; larger ones become fans). Materials, normals, colours, skins and morph
// targets are not read. Returns an Error for a file without faces, with a coordinate that is not
// finite, with an index out of range or beyond `limits`, which are checked before memory is
// allocated.
Status decode_mesh(std::span<const std::byte> bytes, const MeshOptions& options, Mesh& mesh);

// The format by content; the hint if the content is ambiguous.
MeshFormat sniff_mesh(std::span<const std::byte> bytes, MeshFormat hint = MeshFormat::unknown);
// "models/chair.OBJ" -> obj: by the extension, upper or lower case.
MeshFormat mesh_format_of(std::string_view path);
std::string_view to_string(MeshFormat format);

// Cleans, scales, rounds and sorts a mesh from another source, as decode_mesh() does at its end.
// Adds to the counts in the mesh.
Status tidy_mesh(const MeshOptions& options, Mesh& mesh);

double mesh_area(const Mesh& mesh);

// MeshGPT's discretisation of a coordinate in [low, high] to 0..bins-1, and back to the centre of
// the bin: round((t - low) / (high - low) * bins - 0.5), halves to even, clamped.
std::int64_t discretize(float t, int bins, float low = -1, float high = 1);
float undiscretize(std::int64_t bin, int bins, float low = -1, float high = 1);

}  // namespace millrace
