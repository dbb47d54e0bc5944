// A file as read-only memory. Arrays made from it keep the mapping alive, so the object itself may
// go. The length is taken once, when the file is opened, and nothing beyond it is ever shown; a
// file that is cut short while it is mapped is the one thing that cannot be guarded against.
//
//   MappedFile file("tokens.bin", Access::random);
//   Array tokens = file.array(DType::int64, {200'000, 1024});
//   consume(tokens.row(7).as<const std::int64_t>());
#pragma once

#include <millrace/pipeline/data/array.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace millrace {

// What the kernel is told about how the pages will be read. Measured with shuffled rows of 8 KB
// from a cold file of 1.6 GB: normal 140'000 rows/s, sequential 130'000, random 8'300. Over an
// epoch every page is wanted once, so what is read ahead is not wasted as long as it fits into
// memory.
enum class Access {
  normal,      // it reads ahead as it sees fit
  random,      // no read-ahead: for a few rows out of a file that does not fit into memory
  sequential,  // much read-ahead: for checking or converting a whole file
};

class MappedFile {
 public:
  // Throws an Error that names the file if it is not there, not readable or not a regular file.
  explicit MappedFile(std::filesystem::path path, Access access = Access::normal);

  const std::filesystem::path& path() const { return path_; }
  std::size_t size() const { return buffer_.size(); }
  std::span<const std::byte> bytes() const { return {buffer_.data(), buffer_.size()}; }
  // All of it; copies keep the mapping.
  const Buffer& buffer() const { return buffer_; }
  // A view from `offset` on. Throws if the file is too short for it.
  Array array(DType dtype, const Shape& shape, std::size_t offset = 0) const;

  void advise(Access access) const;
  // Starts reading these bytes from the disk and does not wait for them.
  void will_need(std::size_t offset, std::size_t bytes) const;

 private:
  std::filesystem::path path_;
  Buffer buffer_;
};

// Takes mapped bytes out of this process's memory, for who reads a large file once; they are read
// again if they are looked at again.
void let_go(std::span<const std::byte> mapped);
// Shows mapped bytes piece by piece, and lets each go: of a file of any size little is in memory.
void read_once(std::span<const std::byte> mapped,
               const std::function<void(std::span<const std::byte>)>& use);
// checksum_of() of mapped bytes that are read once.
std::uint64_t checksum_of_mapped(std::span<const std::byte> mapped);

}  // namespace millrace
