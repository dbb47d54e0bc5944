#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/printable.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

namespace {

// A larger buffer is freed before the next file, so that threads do not keep it.
constexpr std::size_t most_kept = std::size_t{64} << 20;

struct Descriptor {
  ~Descriptor() {
    if (file >= 0) ::close(file);
  }
  int file;
};

}  // namespace

FileBytes& FileBytes::of_this_thread() {
  thread_local FileBytes bytes;
  return bytes;
}

Status FileBytes::read(const std::filesystem::path& path, std::int64_t limit) {
  auto fail = [&](const std::string& reason) {
    return Error(reason).at(printable(path)).stage("read");
  };
  size_ = 0;
  Descriptor open{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about {};
  if (open.file < 0 || fstat(open.file, &about) != 0) {
    return fail(std::string("cannot open (") + std::strerror(errno) + ")");
  }
  if (S_ISDIR(about.st_mode)) return fail("a folder, not a file");
  if (!S_ISREG(about.st_mode)) return fail("not a regular file");
  if (about.st_size == 0) return fail("the file is empty");
  if (about.st_size > limit) {
    return fail("the file has " + std::to_string(about.st_size) +
                " bytes, more than the limit of " + std::to_string(limit));
  }
  const auto wanted = static_cast<std::size_t>(about.st_size);
  if (capacity_ < wanted || capacity_ > most_kept) {
    memory_.reset();
    capacity_ = 0;
    memory_.reset(static_cast<std::byte*>(std::malloc(wanted)));
    if (!memory_) throw std::bad_alloc();
    capacity_ = wanted;
  }
  std::size_t done = 0;
  while (done < wanted) {
    const ssize_t n = ::read(open.file, memory_.get() + done, wanted - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(std::string("cannot read (") + std::strerror(errno) + ")");
    if (n == 0) break;  // the file was truncated meanwhile: the decoder reports it
    done += static_cast<std::size_t>(n);
  }
  size_ = done;
  return {};
}

}  // namespace millrace
