// A file that gets its final name only when all of it is on the disk. Until then it has a temporary
// name and is locked. The kernel drops the lock of a process that dies, so sweep_temporaries() can
// tell an abandoned file from one that is being written.
//
//   DurableFile file("results/model.pt");
//   file.write("the content");
//   file.commit();  // until here, an older results/model.pt is unchanged
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace millrace {

class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& final_name)
      : DurableFile(final_name.parent_path(), final_name) {}
  // `folder` holds the temporary file; it must be on the same file system as the final name.
  DurableFile(const std::filesystem::path& folder, std::filesystem::path final_name);
  // Removes the temporary file unless commit() was called.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // All of these throw an Error; if the disk is full, it says how much space is free.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Writes everything to the disk (fsync), still under the temporary name.
  void sync();
  // Makes everything written so far visible to other readers of the file.
  void flush();
  // Starts writing to the disk without waiting for it, so that a later sync() is short.
  void begin_sync();
  // Replaces bytes that were written before. Calls flush() first.
  void overwrite(std::uint64_t offset, std::string_view bytes);
  // Calls sync(), renames the file to its final name and syncs the folder.
  void commit();

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  void put(const std::byte* data, std::size_t bytes);

  std::filesystem::path temporary_, final_;
  int file_ = -1;
  std::vector<std::byte> pending_;
  std::uint64_t size_ = 0;
  bool committed_ = false;
};

// Writes and commits a whole file in one call. Throws an Error.
void write_durably(const std::filesystem::path& path, std::string_view content);
// The same for code that returns its errors: the Error carries `path` and `stage`.
Status try_write_durably(const std::filesystem::path& path, std::span<const std::byte> content,
                         const char* stage);

// Waits until the folder's list of names is on the disk.
void sync_folder(const std::filesystem::path& folder);
// Removes temporary files left behind by processes that no longer run.
void sweep_temporaries(const std::filesystem::path& folder);
std::uint64_t free_bytes(const std::filesystem::path& folder);

// A lock file that one process holds at a time. The constructor waits for it; it calls `on_wait`
// first if it must wait. The holder may remove the file; a waiting process then creates a new one.
class FolderLock {
 public:
  enum class AtEnd : std::uint8_t { keep_file, remove_file };
  explicit FolderLock(std::filesystem::path file, const std::function<void()>& on_wait = {},
                      AtEnd at_end = AtEnd::keep_file);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void take(const std::function<void()>& on_wait);
  bool is_still_there() const;

  std::filesystem::path path_;
  int file_ = -1;
  AtEnd at_end_;
};

}  // namespace millrace
