// Writes the zip archive of a .pt file: uncompressed records, each aligned to 64 bytes, in the
// layout of torch.save. The content of a record passes through in pieces; nothing but the directory
// is kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

class ZipWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  // `folder` holds all records. `sink` receives the bytes of the archive in order; what it throws
  // comes out of add() and finish().
  ZipWriter(std::string folder, Sink sink);

  void add(const std::string& name, std::span<const std::byte> content);
  void add(const std::string& name, std::string_view content);
  // Adds the records that torch.load expects, then the directory.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header;
    std::uint64_t size;
    std::uint32_t checksum;
  };

  void put(const std::string& bytes);
  void put_directory();
  std::string serialization_id() const;

  std::string folder_;
  Sink sink_;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace millrace::detail
