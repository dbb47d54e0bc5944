// Private: the number of faces of every mesh of a folder.
#pragma once

#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/pipeline/base/pool.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace millrace::detail {

// Reads and decodes a file. Errors have the path.
Status decode_mesh_file(const std::filesystem::path& path, MeshOptions options, Mesh& mesh);

// The number of faces by sample; 0: the file cannot be decoded. Decodes every file, in parallel.
// With a `cache` folder it decodes only files that are new or whose size or modification time
// changed.
std::vector<std::int64_t> count_faces(const StemPairs& pairs, const MeshOptions& options,
                                      const std::filesystem::path& cache, Pool& pool);

// Moves samples with more than `max_faces` faces from `pairs` and `lengths` to pairs.left_out, and
// logs them.
void leave_out_over_long(StemPairs& pairs, std::vector<std::int64_t>& lengths,
                         std::int64_t max_faces);

// "it has 900 faces, more than max_faces (800)"
std::string over_long_reason(std::int64_t faces, std::int64_t max_faces);

}  // namespace millrace::detail
