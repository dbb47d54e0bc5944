// What the mesh trainers have in common on their command lines: how meshes are read, sorted into
// batches and augmented.
#pragma once

#include "tools/cli/command_line.h"

#include <millrace/datasets/mesh/mesh_data.h>

#include <cstdint>
#include <string>

namespace millrace {

struct MeshSourceOptions {
  MeshDataOptions data{};
  std::string face_edge_cache{};
  std::int64_t bucket_window = 100;
};

// `fields`: what --data-kwargs says of itself.
void add_mesh_data_options(CLI::App& app, MeshSourceOptions& options, const char* fields);

}  // namespace millrace
