// A file that gets its final name only when all of it is on the disk. Until then it has a temporary
// name and a lock that tells others it is in work; the kernel drops the lock of a process that
// dies, so what is left behind can be known and swept.
//
//   DurableFile file("results/model.pt");
//   file.write(bytes);
//   file.commit();   // until here the old file is as it was
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
  // `folder` holds the temporary file; it must be on the file system of the final name.
  DurableFile(const std::filesystem::path& folder, std::filesystem::path final_name);
  // Without commit() nothing remains.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // All throw an Error that tells how much room there is, if that is what was missing.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // To the disk, still under the temporary name.
  void sync();
  // Written as far as other readers of the file are concerned.
  void flush();
  // Lets the disk begin with what is written, without waiting for it.
  void begin_sync();
  // Replaces bytes that were written before; they are flushed first.
  void overwrite(std::uint64_t offset, std::string_view bytes);
  // sync(), then the final name, then the folder that holds it.
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

// Waits for the names in a folder to be on the disk.
void sync_folder(const std::filesystem::path& folder);
// Removes the temporary files of processes that are gone.
void sweep_temporaries(const std::filesystem::path& folder);
std::uint64_t free_bytes(const std::filesystem::path& folder);

// Held by one process at a time; waits for it, after a call of `on_wait` if it must. The file may
// be removed by who holds it: who waited for it then looks for a new one.
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
