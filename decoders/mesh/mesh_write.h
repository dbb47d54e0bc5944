// Meshes to files: OBJ, and PLY in binary. Coordinates are written with as many digits as bring the
// same float32 back.
//
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
