// A file mapped as read-only memory. Arrays made from it keep the mapping alive, so the MappedFile
// itself may be destroyed. The length is read once, when the file is opened. If another process
// truncates the file while it is mapped, reading the missing part ends the program (SIGBUS).
//
//   MappedFile file("tokens.bin", Access::random);
//   Array tokens = file.array(DType::int64, {200'000, 1024});
//   std::int64_t first = tokens.row(7).as<const std::int64_t>()[0];
#pragma once

#include <millrace/pipeline/data/array.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace millrace {

// The kernel's read-ahead policy (madvise). Measured with shuffled rows of 8 KB from a cold file of
// 1.6 GB: normal 140'000 rows/s, sequential 130'000, random 8'300. An epoch reads every page once,
// so read-ahead is not wasted if the file fits into memory.
enum class Access {
  normal,      // the kernel's default
  random,      // no read-ahead: for a few rows of a file that does not fit into memory
  sequential,  // much read-ahead: for checking or converting a whole file
};

class MappedFile {
 public:
  // Throws an Error if the path does not exist, is not readable or is not a regular file.
  explicit MappedFile(std::filesystem::path path, Access access = Access::normal);

  const std::filesystem::path& path() const { return path_; }
  std::size_t size() const { return buffer_.size(); }
  std::span<const std::byte> bytes() const { return {buffer_.data(), buffer_.size()}; }
  // The whole file; copies keep the mapping alive.
  const Buffer& buffer() const { return buffer_; }
  // A view that starts at byte `offset`. Throws if the file is too short.
  Array array(DType dtype, const Shape& shape, std::size_t offset = 0) const;

  void advise(Access access) const;
  // Starts to read these bytes from disk and returns at once.
  void will_need(std::size_t offset, std::size_t bytes) const;

 private:
  std::filesystem::path path_;
  Buffer buffer_;
};

// Removes mapped pages from this process's memory, after a large file was read once. Later accesses
// read them from the file again.
void let_go(std::span<const std::byte> mapped);
// Calls `use` with consecutive pieces and lets each go, so little of a large file is in memory.
void read_once(std::span<const std::byte> mapped,
               const std::function<void(std::span<const std::byte>)>& use);
// The XXH3 checksum of mapped bytes, read with read_once().
std::uint64_t checksum_of_mapped(std::span<const std::byte> mapped);

}  // namespace millrace
