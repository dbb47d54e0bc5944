#include "whole_file.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

Status write_whole_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes,
                        const char* stage) {
  std::string beside = path.string() + ".XXXXXX";
  auto fail = [&](int file) -> Status {
    Error error(std::string("cannot write (") + std::strerror(errno) + ")");
    if (file >= 0) {
      ::close(file);
      ::unlink(beside.c_str());
    }
    return std::move(error).at(path.string()).stage(stage);
  };
  const int file = ::mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) return fail(file);
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(file);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  // mkostemp() makes files that only their owner can read.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file, 0666 & ~mask) != 0 || ::fsync(file) != 0) return fail(file);
  if (::rename(beside.c_str(), path.c_str()) != 0) return fail(file);
  ::close(file);
  return {};
}

}  // namespace millrace
