// The pairs of faces that touch, computed once for each mesh and kept in a folder. A file is named
// by the content of the faces, so a mesh that changes has another one, and it is checked before it
// is believed: a damaged one is made again. Threads and processes may share a folder.
//
//   FaceEdgeCache cache("edges");
//   Status status = cache.find(mesh.faces, {}, pairs);
#pragma once

#include <millrace/decoders/mesh/face_edges.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace millrace {

class FaceEdgeCache {
 public:
  // Makes the folder. Throws an Error if it cannot.
  explicit FaceEdgeCache(std::filesystem::path folder);

  // As face_edges(), from the folder if it is there. A folder that cannot be written to is told
  // once in the log, and does no harm.
  Status find(std::span<const std::array<std::int64_t, 3>> faces, const FaceEdgeOptions& options,
              std::vector<std::array<std::int64_t, 2>>& pairs);

  std::int64_t found() const { return found_; }  // without computing them
  std::int64_t computed() const { return computed_; }

 private:
  std::filesystem::path folder_;
  std::atomic<std::int64_t> found_{0}, computed_{0};
  std::atomic<bool> told_{false};
};

}  // namespace millrace
