// Shared by the mesh tests.
#pragma once

#include <millrace/decoders/mesh/mesh.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

// The file's own mesh, in the file's own order.
inline MeshOptions untouched() {
  return {.merge_vertices = false,
          .drop_degenerate_faces = false,
          .drop_duplicate_faces = false,
          .drop_unused_vertices = false,
          .normalize = false,
          .sort = false};
}

inline Status decode_text_mesh(std::string_view text, const MeshOptions& options, Mesh& mesh) {
  return decode_mesh(std::as_bytes(std::span(text.data(), text.size())), options, mesh);
}

inline std::string message_of(std::string_view text, const MeshOptions& options = {}) {
  Mesh mesh;
  Status status = decode_text_mesh(text, options, mesh);
  return status.ok() ? "ok" : status.error().what();
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace millrace
