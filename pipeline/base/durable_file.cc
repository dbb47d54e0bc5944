#include <millrace/pipeline/base/durable_file.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace millrace {

namespace {

constexpr std::size_t pending_bytes = 1 << 20;
constexpr std::string_view temporary_suffix = ".tmp";

std::string in_megabytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& doing, int error) {
  std::string reason = "cannot " + doing;
  reason.append(" (").append(std::strerror(error)).append(")");
  // A full or broken disk is no mistake of the caller.
  const bool full = error == ENOSPC || error == EDQUOT;
  if (full)
    reason.append(": ").append(in_megabytes(free_bytes(path.parent_path()))).append(" free");
  Error what(reason);
  what.at(path.string());
  what.kind(full || error == EFBIG || error == EIO ? ErrorKind::data : ErrorKind::usage);
  if (full) what.hint("Make room and run the same command again: finished parts are kept");
  throw what;
}

// Unique among threads, processes and machines that write to the same folder.
std::string unique_name(const std::filesystem::path& final_name) {
  static std::atomic<unsigned> number{0};
  char host[64] = "host";
  (void)::gethostname(host, sizeof host - 1);
  return final_name.filename().string() + "." + host + "." + std::to_string(::getpid()) + "." +
         std::to_string(number++) + std::string(temporary_suffix);
}

}  // namespace

std::uint64_t free_bytes(const std::filesystem::path& folder) {
  struct statvfs status {};
  const char* where = folder.empty() ? "." : folder.c_str();
  if (::statvfs(where, &status) != 0) return 0;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

DurableFile::DurableFile(const std::filesystem::path& folder, std::filesystem::path final_name)
    : final_(std::move(final_name)) {
  pending_.reserve(pending_bytes);
  // sweep_temporaries() of another process may remove the file before it is locked: try another.
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = folder / unique_name(final_);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno == EEXIST) continue;
    if (file_ < 0) fail(temporary_, "create", errno);
    struct stat status {};
    bool swept = ::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    // On a file system without locks, sweep_temporaries() removes nothing.
    if (!swept && ::fstat(file_, &status) == 0 && status.st_nlink > 0) return;
    ::close(std::exchange(file_, -1));
  }
  fail(temporary_, "lock", EAGAIN);
}

DurableFile::~DurableFile() {
  if (!committed_ && file_ >= 0) ::unlink(temporary_.c_str());
  if (file_ >= 0) ::close(file_);
}

void DurableFile::put(const std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    ssize_t written = ::write(file_, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(final_, "write " + std::to_string(bytes) + " bytes", errno);
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void DurableFile::flush() {
  put(pending_.data(), pending_.size());
  pending_.clear();
}

void DurableFile::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (pending_.size() + bytes.size() > pending_bytes) flush();
  if (bytes.size() >= pending_bytes) {
    put(bytes.data(), bytes.size());
  } else {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  }
}

void DurableFile::begin_sync() {
  flush();
  // Not every file system supports it; without it, sync() waits longer.
  (void)::sync_file_range(file_, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void DurableFile::overwrite(std::uint64_t offset, std::string_view bytes) {
  flush();
  while (!bytes.empty()) {
    ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(final_, "write", errno);
    offset += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void DurableFile::sync() {
  flush();
  if (::fsync(file_) != 0) fail(final_, "sync it to the disk", errno);
}

void DurableFile::commit() {
  sync();
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) {
    fail(final_, "rename " + temporary_.string() + " to it", errno);
  }
  committed_ = true;
  sync_folder(final_.parent_path());
}

void write_durably(const std::filesystem::path& path, std::string_view content) {
  DurableFile file(path);
  file.write(content);
  file.commit();
}

Status try_write_durably(const std::filesystem::path& path, std::span<const std::byte> content,
                         const char* stage) {
  try {
    DurableFile file(path);
    file.write(content);
    file.commit();
    return {};
  } catch (const Error& error) {
    return Error(error.reason()).at(path.string()).stage(stage).hint(error.hint());
  }
}

void sync_folder(const std::filesystem::path& folder) {
  int file = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail(folder, "open the folder", errno);
  int result = ::fsync(file);
  int error = errno;
  ::close(file);
  // Some network file systems cannot sync a folder and do not need it.
  if (result != 0 && error != EINVAL && error != ENOTSUP) {
    fail(folder, "sync the folder to the disk", error);
  }
}

void sweep_temporaries(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().ends_with(temporary_suffix)) continue;
    int file = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(file);
  }
}

FolderLock::FolderLock(std::filesystem::path file, const std::function<void()>& on_wait,
                       AtEnd at_end)
    : path_(std::move(file)), at_end_(at_end) {
  for (take(on_wait); !is_still_there(); take(on_wait)) ::close(file_);
}

void FolderLock::take(const std::function<void()>& on_wait) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) fail(path_, "create the lock", errno);
  auto lock = [&](int how) { return ::flock(file_, how) == 0 ? 0 : errno; };
  int error = lock(LOCK_EX | LOCK_NB);  // a copy: on_wait() may change errno
  if (error == EWOULDBLOCK && on_wait) on_wait();
  while (error == EWOULDBLOCK || error == EINTR) error = lock(LOCK_EX);
  if (error == 0) return;
  ::close(file_);
  fail(path_, "take the lock", error);
}

bool FolderLock::is_still_there() const {
  struct stat ours {};
  struct stat found {};
  return ::fstat(file_, &ours) == 0 && ::stat(path_.c_str(), &found) == 0 &&
         ours.st_ino == found.st_ino && ours.st_dev == found.st_dev;
}

FolderLock::~FolderLock() {
  if (at_end_ == AtEnd::remove_file) ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace millrace
