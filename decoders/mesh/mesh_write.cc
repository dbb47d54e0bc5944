#include <millrace/decoders/byte_order.h>
#include <millrace/decoders/mesh/mesh_write.h>

#include <charconv>
#include <limits>

namespace millrace {

using namespace detail;

namespace {

template <typename Number>
void append_number(std::string& out, Number number) {
  char digits[64];
  auto [end, problem] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, problem == std::errc() ? end : digits);
}

template <typename Number>
void append_row(std::string& out, std::string_view start, const std::array<Number, 3>& row,
                Number shift = 0) {
  out += start;
  for (std::size_t k = 0; k < 3; ++k) {
    if (k > 0) out += ' ';
    append_number(out, static_cast<Number>(row[k] + shift));
  }
  out += '\n';
}

template <typename T>
void append_bytes(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace

std::string encode_obj(const Mesh& mesh) {
  std::string out;
  out.reserve(mesh.vertices.size() * 32 + mesh.faces.size() * 24);
  for (const auto& vertex : mesh.vertices) append_row(out, "v ", vertex);
  for (const auto& face : mesh.faces) append_row(out, "f ", face, std::int64_t{1});
  return out;
}

std::string encode_ply(const Mesh& mesh, const PlyOptions& options) {
  std::string out = "ply\nformat ";
  out += options.ascii ? "ascii" : "binary_little_endian";
  out += " 1.0\nelement vertex " + std::to_string(mesh.vertices.size());
  out += "\nproperty float x\nproperty float y\nproperty float z\nelement face ";
  out += std::to_string(mesh.faces.size());
  out += "\nproperty list uchar int vertex_indices\nend_header\n";
  for (const auto& vertex : mesh.vertices) {
    if (options.ascii) {
      append_row(out, "", vertex);
    } else {
      for (float coordinate : vertex) append_bytes(out, coordinate);
    }
  }
  for (const auto& face : mesh.faces) {
    for (std::int64_t corner : face) {
      if (corner >= 0 && corner <= std::numeric_limits<std::int32_t>::max()) continue;
      throw Error("vertex " + std::to_string(corner) + " does not fit into a PLY file")
          .stage("ply")
          .kind(ErrorKind::usage);
    }
    if (options.ascii) {
      append_row(out, "3 ", face);
    } else {
      out += '\3';
      for (std::int64_t corner : face) append_bytes(out, static_cast<std::int32_t>(corner));
    }
  }
  return out;
}

}  // namespace millrace
