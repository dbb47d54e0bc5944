// Reads the records of a .pt file, which is a zip archive of uncompressed files. All claims of the
// archive are checked against the file's size before memory is allocated, and each record against
// its CRC-32. (LibTorch's reader does not check the CRC-32, so it would load damaged weights.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace millrace::detail {

class ZipReader {
 public:
  // Reads the directory of the archive. Throws an Error with the path.
  explicit ZipReader(std::filesystem::path path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  // Names are without the archive's folder, which holds all records.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return records_.contains(name); }
  std::uint64_t size(const std::string& name) const { return record(name).size; }
  // Fills `to`, which holds size(name) bytes.
  void read(const std::string& name, void* to) const;
  std::string read(const std::string& name) const;

 private:
  struct Record {
    std::uint64_t header = 0;  // offset of its local header
    std::uint64_t size = 0;
    std::uint32_t checksum = 0;
  };

  [[noreturn]] void fail(const std::string& why) const;
  const Record& record(const std::string& name) const;
  void read_at(std::uint64_t offset, void* to, std::uint64_t size) const;
  void find_directory();
  void read_directory(std::uint64_t offset, std::uint64_t size, std::uint64_t count);
  std::uint64_t read_entry(const std::string& directory, std::uint64_t at);

  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
  std::uint64_t claimed_ = 0;  // by all records together
  std::string folder_;
  std::unordered_map<std::string, Record> records_;
};

}  // namespace millrace::detail
