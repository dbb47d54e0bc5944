// STL, binary and ascii. Many binary files start with "solid" too, so the file size decides.
#include <millrace/decoders/byte_order.h>
#include <millrace/decoders/mesh/formats/text_cursor.h>
#include <millrace/decoders/mesh/mesh_builder.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

namespace {

constexpr std::size_t header_bytes = 84, facet_bytes = 50;

Status read_binary(std::string_view bytes, MeshBuilder& builder) {
  if (bytes.size() < header_bytes) return builder.error("truncated: no room for a binary header");
  auto count = load_little<std::uint32_t>(bytes.data() + 80);
  std::size_t left = bytes.size() - header_bytes;
  if (Status status = builder.expect_faces(count, facet_bytes, left); !status.ok()) return status;
  Status status = builder.expect_vertices(std::uint64_t{count} * 3, 0, 0);
  if (!status.ok()) return status;
  Mesh& mesh = builder.mesh();
  mesh.vertices.resize(std::size_t{count} * 3);
  mesh.faces.resize(count);
  const char* facet = bytes.data() + header_bytes + 12;  // past the normal
  for (std::size_t i = 0; i < count; ++i, facet += facet_bytes) {
    std::memcpy(&mesh.vertices[i * 3], facet, 36);
    auto first = static_cast<std::int64_t>(i * 3);
    mesh.faces[i] = {first, first + 1, first + 2};
  }
  return {};
}

// Only the keywords "vertex" and "endloop" are used; exporters disagree about the rest.
Status read_ascii(std::string_view text, MeshBuilder& builder) {
  TextCursor in(text);
  std::vector<std::int64_t> corners;
  auto bad = [&](const std::string& reason) {
    return builder.error("line " + std::to_string(in.line_number()) + ": " + reason);
  };
  for (; !in.done(); in.skip_line()) {
    std::string_view word = in.word();
    if (word == "vertex" || word == "VERTEX") {
      double v[3];
      for (double& coordinate : v) {
        if (!in.number(coordinate)) return bad("a vertex needs three numbers");
      }
      corners.push_back(static_cast<std::int64_t>(builder.mesh().vertices.size()));
      if (!builder.add_vertex(v[0], v[1], v[2])) return builder.too_many();
    } else if (word == "endloop" || word == "ENDLOOP") {
      if (corners.size() < 3) return bad("a facet needs three vertices");
      if (!builder.add_polygon(corners)) return builder.too_many();
      corners.clear();
    }
  }
  if (!corners.empty()) return builder.error("truncated: ends within a facet");
  return {};
}

// "solid" is followed by an arbitrary name, so the next keyword decides.
bool looks_ascii(std::string_view bytes) {
  TextCursor in(bytes);
  in.skip_spaces();
  std::string_view word = in.word();
  if (word != "solid" && word != "SOLID") return false;
  std::string_view start = bytes.substr(0, 4096);
  return start.find("facet") != start.npos || start.find("FACET") != start.npos ||
         start.find("endsolid") != start.npos;
}

}  // namespace

bool has_binary_stl_size(std::string_view bytes) {
  return bytes.size() >= header_bytes &&
         header_bytes +
                 std::uint64_t{load_little<std::uint32_t>(bytes.data() + 80)} * facet_bytes ==
             bytes.size();
}

Status read_stl(std::string_view bytes, MeshBuilder& builder) {
  if (!has_binary_stl_size(bytes) && looks_ascii(bytes)) return read_ascii(bytes, builder);
  return read_binary(bytes, builder);
}

}  // namespace millrace::detail
