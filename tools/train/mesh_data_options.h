// Options that both mesh trainers share: how meshes are read, sorted into batches and augmented.
#pragma once

#include "tools/cli/options.h"

#include <millrace/datasets/mesh/mesh_data.h>

#include <cstdint>
#include <string>

namespace millrace {

struct MeshSourceOptions {
  MeshDataOptions data{};
  std::string face_edge_cache{};
  std::int64_t bucket_window = 100;
};

// `fields`: help text of --data-kwargs.
void add_mesh_data_options(const Options& options, MeshSourceOptions& values, const char* fields);

}  // namespace millrace
