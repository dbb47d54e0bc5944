// Caches the pairs of adjacent faces of meshes in a folder. Files are named by the hash of the
// faces, so a changed mesh gets a new file. Files are checked when they are read, and a damaged one
// is computed again. Threads and processes may share a folder.
//
//   FaceEdgeCache cache("edges");
//   std::vector<std::array<std::int64_t, 3>> faces = {{0, 1, 2}, {1, 2, 3}};
//   std::vector<std::array<std::int64_t, 2>> pairs;
//   Status status = cache.find(faces, {}, pairs);
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
  // Creates the folder. Throws an Error if it cannot.
  explicit FaceEdgeCache(std::filesystem::path folder);

  // The result of face_edges(), read from the folder if possible. Thread-safe. If the folder is not
  // writable, one line is logged and the pairs are computed every time.
  Status find(std::span<const std::array<std::int64_t, 3>> faces, const FaceEdgeOptions& options,
              std::vector<std::array<std::int64_t, 2>>& pairs);

  std::int64_t found() const { return found_; }        // number of calls served from the folder
  std::int64_t computed() const { return computed_; }  // number of calls that computed the pairs

 private:
  std::filesystem::path folder_;
  std::atomic<std::int64_t> found_{0}, computed_{0};
  std::atomic<bool> warned_{false};
};

}  // namespace millrace
