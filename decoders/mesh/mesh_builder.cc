#include <millrace/decoders/mesh/mesh_builder.h>

#include <algorithm>
#include <cmath>

namespace millrace::detail {

namespace {

std::size_t as_limit(std::int64_t limit) {
  return static_cast<std::size_t>(std::max<std::int64_t>(limit, 0));
}

}  // namespace

MeshBuilder::MeshBuilder(const MeshOptions& options, MeshFormat format, Mesh& mesh)
    : options_(options),
      mesh_(mesh),
      format_(format),
      max_vertices_(as_limit(options.limits.vertices)),
      max_faces_(as_limit(options.limits.faces)) {
  mesh.vertices.clear();
  mesh.faces.clear();
  mesh.counts = {};
  mesh.format = format;
}

Error MeshBuilder::error(std::string reason) const {
  return Error(std::move(reason)).stage(std::string(to_string(format_)));
}

Status MeshBuilder::expect(std::string_view what, std::uint64_t present, std::uint64_t count,
                           std::int64_t limit, std::uint64_t bytes_each,
                           std::uint64_t bytes_left) const {
  if (count > as_limit(limit) || present + count > as_limit(limit)) {
    return error("has " + std::to_string(present + count) + " " + std::string(what) +
                 ", more than the " + std::to_string(limit) + " allowed")
        .hint("Raise limits." + std::string(what) + " if the file is to be trusted");
  }
  if (bytes_each > 0 && count > bytes_left / bytes_each) {
    return error("truncated: its header promises " + std::to_string(count) + " " +
                 std::string(what) + ", but only " + std::to_string(bytes_left) +
                 " bytes are left");
  }
  return {};
}

Status MeshBuilder::expect_vertices(std::uint64_t count, std::uint64_t bytes_each,
                                    std::uint64_t bytes_left) {
  return expect("vertices", mesh_.vertices.size(), count, options_.limits.vertices, bytes_each,
                bytes_left);
}

Status MeshBuilder::expect_faces(std::uint64_t count, std::uint64_t bytes_each,
                                 std::uint64_t bytes_left) {
  return expect("faces", mesh_.faces.size(), count, options_.limits.faces, bytes_each, bytes_left);
}

Status MeshBuilder::too_many() const {
  std::string what = full_of_vertices_ ? "vertices" : "faces";
  std::int64_t limit = full_of_vertices_ ? options_.limits.vertices : options_.limits.faces;
  return error("has more than the " + std::to_string(limit) + " " + what + " allowed")
      .hint("Raise limits." + what + " if the file is to be trusted");
}

bool MeshBuilder::add_polygon(std::span<const std::int64_t> corners) {
  if (corners.size() == 3) return add_triangle(corners[0], corners[1], corners[2]);
  polygons_.push_back({mesh_.faces.size(), corners.size()});
  for (std::size_t i = 2; i < corners.size(); ++i) {
    if (!add_triangle(corners[0], corners[i - 1], corners[i])) return false;
  }
  return true;
}

Status MeshBuilder::check_indices() const {
  // Cast to unsigned, a negative index is a large one, so one comparison finds both.
  std::uint64_t count = mesh_.vertices.size(), highest = 0;
  for (const auto& face : mesh_.faces) {
    for (std::int64_t corner : face) {
      highest = std::max(highest, static_cast<std::uint64_t>(corner));
    }
  }
  if (highest < count || mesh_.faces.empty()) return {};
  for (std::size_t i = 0; i < mesh_.faces.size(); ++i) {
    for (std::int64_t corner : mesh_.faces[i]) {
      if (static_cast<std::uint64_t>(corner) < count) continue;
      return error("triangle " + std::to_string(i) + " has vertex " + std::to_string(corner) +
                   ", but there are " + std::to_string(count) + " vertices");
    }
  }
  return {};
}

Status MeshBuilder::check_coordinates() const {
  // The sum of value * 0 is 0 unless one of the values is not finite.
  float probe = 0;
  for (const auto& v : mesh_.vertices) probe += (v[0] * 0.0F + v[1] * 0.0F) + v[2] * 0.0F;
  if (probe == 0) return {};
  for (const auto& face : mesh_.faces) {
    for (std::int64_t corner : face) {
      const auto& v = mesh_.vertices[static_cast<std::size_t>(corner)];
      if (std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2])) continue;
      return error("vertex " + std::to_string(corner) + " is not finite");
    }
  }
  return {};
}

Status MeshBuilder::finish() {
  if (mesh_.faces.empty()) {
    return error(mesh_.vertices.empty() && mesh_.counts.other_elements == 0
                     ? "holds no mesh"
                     : "has no faces: a point cloud or lines only");
  }
  if (Status status = check_indices(); !status.ok()) return status;
  if (Status status = check_coordinates(); !status.ok()) return status;
  std::int64_t work = 100'000'000;
  for (const Polygon& polygon : polygons_) {
    cut_polygon(mesh_.vertices,
                std::span(mesh_.faces).subspan(polygon.first_face, polygon.corners - 2), work);
  }
  mesh_.counts.file_vertices = static_cast<std::int64_t>(mesh_.vertices.size());
  mesh_.counts.file_faces = static_cast<std::int64_t>(mesh_.faces.size());
  mesh_.counts.polygons = static_cast<std::int64_t>(polygons_.size());
  return {};
}

}  // namespace millrace::detail
