// The files of a folder, in an order that depends on their names alone: sorted by the bytes of the
// path below the folder. Folders are read in parallel; a large listing is remembered in an index
// file, so that the next start takes a moment.
//
//   FileList files("photos", {.extensions = {"jpg", "png"}});     // .JPG too, at any depth
//   for (std::int64_t i = 0; i < files.size(); ++i) use(files.path(i));
//
// Copies share the list. In memory a file takes its name and 8 bytes, 16 more with `check_files`.
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

// Note [when an index is believed]
// The index has the stamps (device, inode, times of change) of every folder that was read. If one
// differs, everything is read again: files that were added, removed or renamed change their
// folder's stamp. So does a folder that changed so shortly before it was read that its clock may
// not tell: it is never believed. A file whose content changed in place does not touch its folder.
// So sizes and times are not taken from an index: they are looked up when somebody asks, or with
// `check_files` all at once, about a microsecond a file (ten on a cold disk), and compared.
struct FileListOptions {
  std::vector<std::string> extensions{};  // without the dot, any letter case; empty: every file
  bool recursive = true;
  enum class Index {
    automatic,  // used if it is there; written where 50,000 files or more were listed
    always,
    never,
  } index = Index::automatic;
  // Where the index is; empty: hidden beside the folder, or if nothing can be written there in the
  // user's cache folder.
  std::filesystem::path index_path{};
  bool check_files = false;      // look up the size and time of every file now, in parallel
  std::shared_ptr<Pool> pool{};  // null: Pool::shared()
};

class FileList {
 public:
  // Throws if the folder does not exist or cannot be read. A folder below that cannot be read, or
  // one that a link leads back to, is in left_out(); a file that cannot be read is listed, since
  // only loading it tells.
  explicit FileList(const std::filesystem::path& folder, FileListOptions options = {});

  std::int64_t size() const;
  const std::filesystem::path& folder() const;
  // Below the folder, with '/'.
  std::string relative(std::int64_t index) const;
  std::filesystem::path path(std::int64_t index) const { return folder() / relative(index); }
  std::string_view name(std::int64_t index) const;     // the last part
  std::int64_t bytes(std::int64_t index) const;        // -1: unknown, e.g. of a broken link
  std::int64_t modified_ns(std::int64_t index) const;  // since 1970
  // The files whose last extension is one of these, in the same order.
  FileList only(const std::vector<std::string>& extensions) const;

  // What was found and is not in the list although its name or place says it should be: a folder
  // named x.png, a folder that cannot be read, a link to a folder that is listed already.
  const std::vector<LeftOut>& left_out() const;
  std::int64_t folders() const;
  std::int64_t folder_index(std::int64_t index) const;  // which of them a file lies in
  bool from_index() const;  // the folders were not read, since the index was still right
  // With `check_files`: how many have another size or time than the index remembers.
  std::int64_t changed_files() const;
  std::int64_t memory_bytes() const;

 private:
  explicit FileList(std::shared_ptr<const struct FileTable> table) : table_(std::move(table)) {}
  std::shared_ptr<const struct FileTable> table_;
};

// True if the name's last extension is one of these, in any letter case. ".png" has none.
bool has_extension(std::string_view name, const std::vector<std::string>& extensions);
// The name without its last extension.
std::string_view stem_of(std::string_view name);

}  // namespace millrace
