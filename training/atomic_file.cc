#include <millrace/pipeline/error.h>
#include <millrace/training/atomic_file.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <c10/util/StringUtil.h>
#include <fcntl.h>
#include <unistd.h>

namespace millrace {

namespace {

// The rename itself is durable only once the folder is.
int sync_names(const std::filesystem::path& folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  // Some network file systems cannot sync a folder; there the rename is as good as it gets.
  int error = ::fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
  ::close(descriptor);
  return error;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += c10::str(".tmp.", ::getpid());
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw Error(c10::str("cannot be written (", std::strerror(errno), ")")).at(path_.string());
  }
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t size) noexcept {
  const char* from = static_cast<const char*>(data);
  while (size > 0 && error_ == 0) {
    ssize_t written = ::write(file_, from, size);
    if (written < 0) {
      if (errno != EINTR) error_ = errno;
      continue;
    }
    from += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  if (error_ == 0 && ::fsync(file_) != 0) error_ = errno;
  if (::close(file_) != 0 && error_ == 0) error_ = errno;
  file_ = -1;
  if (error_ == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ == 0) {
    committed_ = true;
    std::filesystem::path folder = path_.parent_path();
    error_ = sync_names(folder.empty() ? "." : folder);
  }
  if (error_ != 0) {
    Error error(c10::str("cannot be written (", std::strerror(error_), ")"));
    error.at(path_.string());
    if (!committed_) error.hint("What was there under this name is untouched");
    throw error;
  }
}

void write_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace millrace
