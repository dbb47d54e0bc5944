// glTF 2.0 and GLB: the meshes of the default scene, transformed by their nodes. Skins and morph
// targets are not applied; compressed geometry (Draco, meshopt) is refused.
#include <millrace/decoders/mesh/formats/gltf_data.h>
#include <millrace/decoders/mesh/mesh_builder.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::detail {

namespace {

using Json = GltfData::Json;

// Rows of a 3 x 4 affine matrix; the last row of the 4 x 4 one is always 0 0 0 1.
using Matrix = std::array<std::array<double, 4>, 3>;

constexpr Matrix identity{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      result[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    }
    result[i][3] += a[i][3];
  }
  return result;
}

double determinant(const Matrix& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

class SceneReader {
 public:
  SceneReader(GltfData& data, MeshBuilder& builder)
      : data_(data), builder_(builder), visited_(data.count("nodes")) {}

  void read() {
    refuse_compression();
    for (std::uint64_t root : roots()) pending_.push_back({root, identity});
    if (visited_.empty()) {
      for (std::uint64_t i = 0; i < data_.count("meshes"); ++i) add_mesh(i, identity);
    }
    while (!pending_.empty()) {
      Pending next = pending_.back();
      pending_.pop_back();
      visit(next.node, next.parent);
    }
  }

 private:
  struct Pending {
    std::uint64_t node;
    Matrix parent;
  };

  void refuse_compression() const {
    auto required = data_.json().find("extensionsRequired");
    if (required == data_.json().end() || !required->is_array()) return;
    for (const Json& name : *required) {
      if (name == "KHR_draco_mesh_compression" || name == "EXT_meshopt_compression") {
        data_.fail("its geometry is compressed with " + name.get<std::string>() +
                   ", which is not read");
      }
    }
  }

  std::vector<std::uint64_t> numbers(const Json& object, const char* key) const {
    std::vector<std::uint64_t> result;
    auto it = object.find(key);
    if (it == object.end()) return result;
    if (!it->is_array()) data_.fail(std::string(key) + " is not a list");
    for (const Json& value : *it) {
      if (!value.is_number_unsigned())
        data_.fail(std::string(key) + " has an item that is no index");
      result.push_back(value.get<std::uint64_t>());
    }
    return result;
  }

  // The roots of the default scene, else of the first scene; without scenes, all nodes that have no
  // parent.
  std::vector<std::uint64_t> roots() const {
    if (data_.count("scenes") > 0) {
      return numbers(data_.item("scenes", data_.number(data_.json(), "scene", 0)), "nodes");
    }
    std::vector<bool> child(visited_.size());
    for (std::uint64_t i = 0; i < child.size(); ++i) {
      for (std::uint64_t c : numbers(data_.item("nodes", i), "children")) {
        if (c < child.size()) child[c] = true;
      }
    }
    std::vector<std::uint64_t> result;
    for (std::uint64_t i = 0; i < child.size(); ++i) {
      if (!child[i]) result.push_back(i);
    }
    return result;
  }

  void visit(std::uint64_t index, const Matrix& parent) {
    const Json& node = data_.item("nodes", index);
    // A node has at most one parent, so a second visit means an invalid graph (a cycle or a
    // diamond).
    if (visited_[index]) data_.fail("nodes[" + std::to_string(index) + "] is reached twice");
    visited_[index] = true;
    Matrix matrix = parent * local_matrix(node);
    if (node.contains("mesh")) add_mesh(data_.number(node, "mesh"), matrix);
    for (std::uint64_t child : numbers(node, "children")) pending_.push_back({child, matrix});
  }

  template <std::size_t n>
  std::array<double, n> vector(const Json& node, const char* key,
                               std::array<double, n> value) const {
    auto it = node.find(key);
    if (it == node.end()) return value;
    if (!it->is_array() || it->size() != n) {
      data_.fail(std::string(key) + " needs " + std::to_string(n) + " numbers");
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (!(*it)[i].is_number()) data_.fail(std::string(key) + " has an item that is no number");
      value[i] = (*it)[i].get<double>();
    }
    return value;
  }

  Matrix local_matrix(const Json& node) const {
    Matrix result;
    if (node.contains("matrix")) {
      auto columns = vector<16>(node, "matrix", {});
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 4; ++j) result[i][j] = columns[j * 4 + i];
      }
      return result;
    }
    auto t = vector<3>(node, "translation", {0, 0, 0});
    auto [x, y, z, w] = vector<4>(node, "rotation", {0, 0, 0, 1});
    auto s = vector<3>(node, "scale", {1, 1, 1});
    result = {{{1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), 0},
               {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), 0},
               {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), 0}}};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) result[i][j] *= s[j];
      result[i][3] = t[i];
    }
    return result;
  }

  void add_mesh(std::uint64_t index, const Matrix& matrix) {
    const Json& mesh = data_.item("meshes", index);
    auto primitives = mesh.find("primitives");
    if (primitives == mesh.end() || !primitives->is_array()) data_.fail("a mesh has no primitives");
    for (const Json& primitive : *primitives) add_primitive(primitive, matrix);
  }

  void add_primitive(const Json& primitive, const Matrix& matrix) {
    auto attributes = primitive.find("attributes");
    std::uint64_t mode = data_.number(primitive, "mode", 4);
    if (mode > 6) data_.fail("a primitive has mode " + std::to_string(mode));
    if (mode < 4) return builder_.skip_element();
    if (attributes == primitive.end() || !attributes->is_object()) {
      data_.fail("a primitive has no attributes");
    }
    std::uint64_t accessor = data_.number(*attributes, "POSITION");
    require(builder_.expect_vertices(data_.accessor_count(accessor), 0, 0));
    auto first = static_cast<std::int64_t>(builder_.mesh().vertices.size());
    data_.read_floats(accessor, 3, positions_);
    for (std::size_t i = 0; i < positions_.size(); i += 3) {
      std::array<double, 3> moved{};
      for (std::size_t k = 0; k < 3; ++k) {
        const auto& row = matrix[k];
        moved[k] = row[0] * positions_[i] + row[1] * positions_[i + 1] +
                   row[2] * positions_[i + 2] + row[3];
      }
      if (!builder_.add_vertex(moved[0], moved[1], moved[2])) require(builder_.too_many());
    }
    read_corners(primitive, static_cast<std::int64_t>(positions_.size() / 3));
    // A mirroring transform turns faces inside out; reversing the order of corners undoes it.
    add_faces(static_cast<int>(mode), first, determinant(matrix) < 0);
  }

  void read_corners(const Json& primitive, std::int64_t vertices) {
    if (primitive.contains("indices")) {
      std::uint64_t accessor = data_.number(primitive, "indices");
      // In mode TRIANGLES there is a face per three corners, in strips and fans one per corner
      // less 2.
      require(builder_.expect_faces(data_.accessor_count(accessor) / 3, 0, 0));
      data_.read_indices(accessor, corners_);
      for (std::int64_t corner : corners_) {
        if (corner < vertices) continue;
        data_.fail("a primitive has index " + std::to_string(corner) + ", but " +
                   std::to_string(vertices) + " vertices");
      }
      return;
    }
    corners_.resize(static_cast<std::size_t>(vertices));
    for (std::size_t i = 0; i < corners_.size(); ++i) corners_[i] = static_cast<std::int64_t>(i);
  }

  void add_faces(int mode, std::int64_t first, bool mirrored) {
    std::size_t n = corners_.size(), step = mode == 4 ? 3 : 1;
    for (std::size_t i = 0; i + 2 < n; i += step) {
      bool turned = mode == 5 && i % 2 == 1;
      std::int64_t a = corners_[mode == 6 ? 0 : i] + first;
      std::int64_t b = corners_[i + 1] + first, c = corners_[i + 2] + first;
      bool swap = turned != mirrored;
      if (!builder_.add_triangle(a, swap ? c : b, swap ? b : c)) require(builder_.too_many());
    }
  }

  // Errors are thrown inside this class, as in GltfData.
  static void require(Status status) {
    if (!status.ok()) throw std::move(status.error());
  }

  GltfData& data_;
  MeshBuilder& builder_;
  std::vector<bool> visited_;
  std::vector<Pending> pending_;
  std::vector<double> positions_;
  std::vector<std::int64_t> corners_;
};

}  // namespace

Status read_gltf(std::string_view bytes, MeshBuilder& builder) {
  try {
    GltfData data(bytes, builder);
    SceneReader(data, builder).read();
    return {};
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace millrace::detail
