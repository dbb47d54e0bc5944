// Files that are never half there: written under a temporary name beside their own, brought to the
// disk, then renamed. Whoever is killed or runs out of disk in between leaves the old file as it
// was.
//
//   write_atomically("results/config.toml", text);
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace millrace {

class AtomicFile {
 public:
  // Opens `path` + ".tmp.<pid>" in the same folder, which must exist.
  explicit AtomicFile(std::filesystem::path path);
  // Removes the temporary file unless commit() was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Never throws: the first failure is remembered, what follows is dropped, and commit() tells.
  void write(const void* data, std::size_t size) noexcept;
  bool failed() const { return error_ != 0; }
  // fsync, rename, fsync of the folder. Throws an Error with the path if anything went wrong.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int file_ = -1;
  int error_ = 0;
  bool committed_ = false;
};

void write_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace millrace
