// Encodes meshes as OBJ or PLY. Coordinates have enough digits to restore the same float32.
//
//   Mesh mesh;
//   std::string obj = encode_obj(mesh);
//   std::string ply = encode_ply(mesh);
#pragma once

#include <millrace/decoders/mesh/mesh.h>

#include <string>

namespace millrace {

std::string encode_obj(const Mesh& mesh);

struct PlyOptions {
  bool ascii = false;  // otherwise binary, little-endian
};
// Throws an Error if an index does not fit into PLY's 32 bits.
std::string encode_ply(const Mesh& mesh, const PlyOptions& options = {});

}  // namespace millrace
