// Private: the list of files in memory and in an index file, and the functions that make it.
#pragma once

#include <millrace/datasets/listing/file_list.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct stat;

namespace millrace::detail {

// Identifies a state of a folder: adding, removing or renaming a file changes it.
struct FolderStamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;

  static FolderStamp of(const struct stat& about);
  friend bool operator==(const FolderStamp&, const FolderStamp&) = default;
};

struct FolderEntry {
  std::string prefix;  // "" or "a/b/"
  FolderStamp stamp;
  // True if the folder was last changed long enough before it was read for any later change to give
  // another stamp.
  bool settled = false;
};

struct FileTable {
  std::filesystem::path root;
  std::vector<FolderEntry> folders;
  // By file.
  std::vector<std::uint32_t> folder_of;
  std::vector<std::uint32_t> name_begin{
      0};  // size() + 1 values: the last is the end of the last name
  std::vector<std::int64_t> bytes, modified_ns;  // empty: not looked up
  std::string names;
  std::vector<LeftOut> left_out;
  bool from_index = false;
  bool complete = true;  // all folders could be read
  std::int64_t changed_files = 0;

  std::size_t size() const { return folder_of.size(); }
  std::string_view name(std::size_t i) const {
    return std::string_view(names).substr(name_begin[i], name_begin[i + 1] - name_begin[i]);
  }
  bool has_details() const { return bytes.size() == size(); }
  std::string path(std::size_t i) const;  // with the root
  void reserve(std::size_t files, std::size_t name_bytes, bool details);
  void add(std::uint32_t folder, std::string_view name);
};

std::int64_t modified_ns_of(const struct stat& about);

// Lists the folder and its subfolders. `extensions` are in lower case.
FileTable scan_files(const std::filesystem::path& root, const FileListOptions& options, Pool& pool);

// Identifies what an index is for. Other extensions or another version give another key.
std::string index_key(const FileListOptions& options);
// Nothing if the index is missing, damaged or has another key. Stamps are not compared.
std::optional<FileTable> read_index(const std::filesystem::path& path, const std::string& key);
Status write_index(const std::filesystem::path& path, const std::string& key,
                   const FileTable& table);

}  // namespace millrace::detail
