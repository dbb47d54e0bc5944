// Reads whole files into a buffer that is reused for the next file. Never blocks: a named pipe or a
// folder is an error.
//
//   FileBytes file;
//   Status status = file.read("photos/a.jpg");
//   std::size_t size = file.bytes().size();
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>

namespace millrace {

class FileBytes {
 public:
  // The calling thread's own buffer. bytes() is valid until the next read().
  static FileBytes& of_this_thread();

  // Fails if the path cannot be read, is not a regular file, is empty or has more than `limit`
  // bytes.
  Status read(const std::filesystem::path& path, std::int64_t limit = std::int64_t{1} << 30);
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace millrace
