// Private: reads and sorts the entries of one folder.
#pragma once

#include "file_table.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

struct FolderItem {
  enum class Kind : std::uint8_t { file, folder, linked_folder, link, unknown, other };

  std::uint32_t begin = 0;  // of the name, in its folder's names
  std::uint16_t length = 0;
  Kind kind = Kind::unknown;
  bool wanted = false;  // has one of the wanted extensions
  std::int64_t bytes = -1;
  std::int64_t modified_ns = 0;

  bool is_folder() const { return kind == Kind::folder || kind == Kind::linked_folder; }
};

struct FolderListing {
  // A folder with more items is looked up in parts, by several threads.
  static constexpr std::size_t small = 4096;

  std::string prefix;
  FolderStamp stamp;
  bool settled = false;   // see FolderEntry
  int error = 0;          // errno
  bool repeated = false;  // already listed under another path
  std::string names;
  std::vector<FolderItem> items;
  std::vector<std::size_t> children;  // listings of the items that are folders, in their order

  std::string_view name(const FolderItem& item) const {
    return std::string_view(names).substr(item.begin, item.length);
  }

  // Three steps. read() gets the names. look_up() resolves links and, with `check_files`, gets
  // sizes and times; read() calls it itself if the folder is small. sort() orders the items and
  // drops unwanted files.
  void read(const std::filesystem::path& root, const FileListOptions& options);
  void look_up(const std::filesystem::path& root, const FileListOptions& options, std::size_t begin,
               std::size_t end);
  void sort();

 private:
  void look_up(int folder, bool check_files, std::size_t begin, std::size_t end);
  bool comes_before(const FolderItem& a, const FolderItem& b) const;
  std::size_t common_start() const;
};

}  // namespace millrace::detail
