// Mesh files to triangles: OBJ, PLY (ascii, binary of both byte orders), STL (ascii, binary), OFF
// and glTF/GLB, by readers of our own that are safe inside the process. The result is cleaned,
// scaled and put in MeshGPT's order unless told otherwise.
//
//   Mesh mesh;   // keep it: its memory is used again by the next call
//   Status status = decode_mesh(bytes, {.hint = mesh_format_of("chair.obj"), .bins = 128}, mesh);
//   if (status.ok()) train(mesh.vertices, mesh.faces);
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
  // What the file's name says (see mesh_format_of). Content wins where it is unmistakable.
  MeshFormat hint = MeshFormat::unknown;
  // glTF may keep its buffers in files beside it. They are read from this folder only, and not at
  // all if it is empty.
  std::filesystem::path folder{};
  bool merge_vertices = true;         // those at exactly the same place
  bool drop_degenerate_faces = true;  // two corners at the same place
  bool drop_duplicate_faces = true;   // the same three vertices in any order; the first stays
  bool drop_unused_vertices = true;   // those that no face has a corner at
  bool normalize = true;  // the middle of the bounding box to 0, its longest side to [-1, 1]
  // MeshGPT's order: vertices by z, then y, then x; each face rotated so that its lowest index
  // comes first, then faces by their indices.
  bool sort = true;
  // Coordinates snap to the centres of this many bins over [-1, 1], as MeshGPT's autoencoder
  // discretises them; what then coincides is cleaned again. 0: they stay as they are.
  int bins = 0;
  DecodeLimits limits{};
};

// What was done to the file's own mesh.
struct MeshCounts {
  std::int64_t file_vertices = 0;   // as the file has them, instances of a glTF scene included
  std::int64_t file_faces = 0;      // triangles, before any was dropped
  std::int64_t polygons = 0;        // faces of more than three corners that were triangulated
  std::int64_t other_elements = 0;  // points and lines, which are left out
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

// Convex polygons become fans around their first corner, concave ones are cut by ear clipping (up
// to 512 corners; larger ones become fans). Materials, normals, colours, skins and morph targets
// are not read. A file without faces, with a coordinate that is not finite or with an index that
// is out of range is an error; so is one beyond `limits`, before memory is taken for it.
Status decode_mesh(std::span<const std::byte> bytes, const MeshOptions& options, Mesh& mesh);

// The format by content, with the hint where content does not tell.
MeshFormat sniff_mesh(std::span<const std::byte> bytes, MeshFormat hint = MeshFormat::unknown);
// "models/chair.OBJ" -> obj. Only the extension counts, in any case.
MeshFormat mesh_format_of(std::string_view path);
std::string_view to_string(MeshFormat format);

// Cleaning, scaling, snapping and sorting as `options` say; decode_mesh ends with it. For meshes
// that come from elsewhere. The counts are added to.
Status tidy_mesh(const MeshOptions& options, Mesh& mesh);

double mesh_area(const Mesh& mesh);

// MeshGPT's discretisation of a coordinate in [low, high] into 0..bins-1, and back to the bin's
// centre: round((t - low) / (high - low) * bins - 0.5), halves to even, clamped.
std::int64_t discretize(float t, int bins, float low = -1, float high = 1);
float undiscretize(std::int64_t bin, int bins, float low = -1, float high = 1);

}  // namespace millrace
