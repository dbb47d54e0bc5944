// Private: how many faces each mesh of a folder has, found out once.
#pragma once

#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/pipeline/base/pool.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace millrace {

// Reads and decodes a file; the error has its path.
Status decode_mesh_file(const std::filesystem::path& path, MeshOptions options, Mesh& mesh);

// By sample; 0: it cannot be decoded. Every file is decoded, in parallel; with a `cache` folder
// only those are whose size or time of change is not the one that their number was found with.
std::vector<std::int64_t> count_faces(const StemPairs& pairs, const MeshOptions& options,
                                      const std::filesystem::path& cache, Pool& pool);

// Leaves samples of more than `max_faces` out, here and there, and says so.
void leave_out_over_long(StemPairs& pairs, std::vector<std::int64_t>& lengths,
                         std::int64_t max_faces);

// "it has 900 faces, more than max_faces (800)"
std::string over_long_reason(std::int64_t faces, std::int64_t max_faces);

}  // namespace millrace
