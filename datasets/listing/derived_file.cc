#include "derived_file.h"

#include <millrace/datasets/caches/checksum.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::detail {

namespace {

struct Header {
  char kind[8];
  std::uint64_t payload_bytes, checksum;
};

Header header_of(std::string_view kind, std::string_view payload) {
  Header header{{}, payload.size(), checksum_of(payload)};
  std::memcpy(header.kind, kind.data(), sizeof header.kind);
  return header;
}

bool read_all(const std::filesystem::path& path, std::string& bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat about {};
  bool ok = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  if (ok) bytes.resize(static_cast<std::size_t>(about.st_size));
  for (std::size_t done = 0; ok && done < bytes.size();) {
    ssize_t n = ::read(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    done += ok ? static_cast<std::size_t>(n) : 0;
  }
  ::close(file);
  return ok;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_derived_file(const std::filesystem::path& path,
                                             std::string_view kind) {
  std::string bytes;
  Header found{};
  if (!read_all(path, bytes) || bytes.size() < sizeof found) return std::nullopt;
  std::memcpy(&found, bytes.data(), sizeof found);
  const std::string_view payload = std::string_view(bytes).substr(sizeof found);
  const Header expected = header_of(kind, payload);
  if (std::memcmp(&found, &expected, sizeof found) != 0) return std::nullopt;
  bytes.erase(0, sizeof found);
  return bytes;
}

Status write_derived_file(const std::filesystem::path& path, std::string_view kind,
                          std::string_view payload) {
  const Header header = header_of(kind, payload);
  std::string beside = path.string() + ".XXXXXX";
  const int file = ::mkostemp(beside.data(), O_CLOEXEC);
  bool ok = file >= 0;
  ok = ok && write_all(file, {reinterpret_cast<const char*>(&header), sizeof header});
  ok = ok && write_all(file, payload);
  // No fsync: a file that a crash truncated fails its checksum.
  ok = ok && ::fchmod(file, 0644) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  Status status;
  if (!ok) {
    status = Error(std::string("cannot write it (") + std::strerror(errno) + ")");
    if (file >= 0) ::unlink(beside.c_str());
  }
  if (file >= 0) ::close(file);
  return status;
}

}  // namespace millrace::detail
