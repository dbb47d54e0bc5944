// Private to the mesh readers: collects the vertices and faces that they read, enforces the limits
// and turns polygons into triangles.
#pragma once

#include <millrace/decoders/mesh/mesh.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

class MeshBuilder {
 public:
  MeshBuilder(const MeshOptions& options, MeshFormat format, Mesh& mesh);

  Error error(std::string reason) const;
  // Checks a count in a header against the limit and against the rest of the file: `bytes_each` is
  // the minimum size of one item (0: already checked). So a small file with a large count allocates
  // no memory.
  Status expect_vertices(std::uint64_t count, std::uint64_t bytes_each, std::uint64_t bytes_left);
  Status expect_faces(std::uint64_t count, std::uint64_t bytes_each, std::uint64_t bytes_left);
  // Only for counts that have been checked.
  void reserve_vertices(std::uint64_t more) {
    mesh_.vertices.reserve(mesh_.vertices.size() + more);
  }
  void reserve_faces(std::uint64_t more) { mesh_.faces.reserve(mesh_.faces.size() + more); }
  // For formats without counts: the error after add_*() returned false.
  Status too_many() const;

  // Returns false if the limit is reached.
  bool add_vertex(double x, double y, double z) {
    if (mesh_.vertices.size() >= max_vertices_) return full_of_vertices_ = true, false;
    mesh_.vertices.push_back({static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)});
    return true;
  }
  bool add_triangle(std::int64_t a, std::int64_t b, std::int64_t c) {
    if (mesh_.faces.size() >= max_faces_) return false;
    mesh_.faces.push_back({a, b, c});
    return true;
  }
  // For three or more corners. Stored as a fan, from which finish() restores the corners.
  bool add_polygon(std::span<const std::int64_t> corners);
  void skip_element(std::int64_t count = 1) { mesh_.counts.other_elements += count; }

  Mesh& mesh() { return mesh_; }
  const MeshOptions& options() const { return options_; }

  // Checks every index and coordinate and cuts concave polygons.
  Status finish();

 private:
  struct Polygon {
    std::size_t first_face = 0;
    std::size_t corners = 0;
  };

  Status expect(std::string_view what, std::uint64_t present, std::uint64_t count,
                std::int64_t limit, std::uint64_t bytes_each, std::uint64_t bytes_left) const;
  Status check_indices() const;
  Status check_coordinates() const;

  const MeshOptions& options_;
  Mesh& mesh_;
  MeshFormat format_;
  std::size_t max_vertices_, max_faces_;
  bool full_of_vertices_ = false;
  std::vector<Polygon> polygons_;
};

// `fan` holds the n - 2 triangles of a polygon as a fan; they are replaced if the polygon is
// concave. `work` is the remaining budget of the file for this quadratic algorithm; at 0 the fan is
// kept.
void cut_polygon(std::span<const std::array<float, 3>> vertices,
                 std::span<std::array<std::int64_t, 3>> fan, std::int64_t& work);

Status read_obj(std::string_view text, MeshBuilder& builder);
Status read_ply(std::string_view bytes, MeshBuilder& builder);
Status read_stl(std::string_view bytes, MeshBuilder& builder);
Status read_off(std::string_view text, MeshBuilder& builder);
Status read_gltf(std::string_view bytes, MeshBuilder& builder);

// True if the file size matches the triangle count in the header of a binary STL; then it is
// binary, even if it starts with "solid".
bool has_binary_stl_size(std::string_view bytes);

}  // namespace millrace::detail
