// The files of a folder and its subfolders, sorted by the bytes of their relative paths, so the
// order does not depend on the file system. Folders are read in parallel. A large list is saved in
// an index file, which makes the next start fast.
//
//   FileList files("photos", {.extensions = {"jpg", "png"}});  // also .JPG, at any depth
//   std::int64_t bytes = 0;
//   for (std::int64_t i = 0; i < files.size(); ++i) bytes += files.bytes(i);
//
// Copies share the list. A file takes 8 bytes of memory plus its name, and 16 more with
// `check_files`.
#pragma once

#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

namespace detail {
struct FileTable;
}

// Note [when an index is believed]
// The index stores the stamp (device, inode, modification and change time) of every folder. If one
// stamp differs, all folders are read again: adding, removing or renaming a file changes the stamp
// of its folder. A folder that changed right before it was read is never believed, because the file
// system's clock may be too coarse to show another change. A file that is modified in place does
// not change its folder, so sizes and times are not taken from an index. They are looked up when
// asked for, or with `check_files` all at once, which takes about 1 us per file (10 us on a cold
// disk).
struct FileListOptions {
  std::vector<std::string> extensions{};  // without the dot, case-insensitive; empty: all files
  bool recursive = true;
  enum class Index {
    automatic,  // read if it exists; written for 50,000 files or more
    always,
    never,
  } index = Index::automatic;
  // Path of the index; empty: a hidden file beside the folder, or in the user's cache folder if
  // that place is not writable.
  std::filesystem::path index_path{};
  bool check_files = false;      // look up sizes and times of all files, in parallel
  std::shared_ptr<Pool> pool{};  // null: Pool::shared()
};

class FileList {
 public:
  // Throws if the folder does not exist or cannot be read. A subfolder that cannot be read, or that
  // a link reaches a second time, is in left_out(). A file that cannot be read is in the list: only
  // loading it shows the problem.
  explicit FileList(const std::filesystem::path& folder, FileListOptions options = {});

  std::int64_t size() const;
  const std::filesystem::path& folder() const;
  // The path relative to the folder, with '/'.
  std::string relative(std::int64_t index) const;
  std::filesystem::path path(std::int64_t index) const { return folder() / relative(index); }
  std::string_view name(std::int64_t index) const;     // the last part of the path
  std::int64_t bytes(std::int64_t index) const;        // -1: unknown, e.g. for a broken link
  std::int64_t modified_ns(std::int64_t index) const;  // since 1970
  // The files with one of these extensions, in the same order.
  FileList only(const std::vector<std::string>& extensions) const;

  // Entries that are not in the list although their name or place suggests it: a folder named
  // x.png, a folder that cannot be read, a link to a folder that is already listed.
  const std::vector<LeftOut>& left_out() const;
  std::int64_t folders() const;
  std::int64_t folder_index(std::int64_t index) const;  // number of the folder that holds the file
  bool from_index() const;  // true if the index was valid and no folder was read
  // With `check_files`: the number of files with another size or time than in the index.
  std::int64_t changed_files() const;
  std::int64_t memory_bytes() const;

 private:
  explicit FileList(std::shared_ptr<const detail::FileTable> table) : table_(std::move(table)) {}
  std::shared_ptr<const detail::FileTable> table_;
};

// True if the name has one of these extensions, case-insensitive. The name ".png" has none.
bool has_extension(std::string_view name, const std::vector<std::string>& extensions);
// The name without its last extension.
std::string_view stem_of(std::string_view name);

}  // namespace millrace
