// A whole file in memory that is used again for the next. Never blocks on what is no file: a named
// pipe or a folder in the place of a picture is an error.
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
  // For one file at a time on this thread. What it holds is valid until the next read.
  static FileBytes& of_this_thread();

  // Fails if it cannot be read, is no regular file, is empty or has more than `limit` bytes.
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
