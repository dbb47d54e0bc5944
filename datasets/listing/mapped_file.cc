#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/listing/mapped_file.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

using namespace detail;

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& doing, int error) {
  throw Error("cannot " + doing + " (" + std::strerror(error) + ")").at(path.string());
}

int to_advice(Access access) {
  switch (access) {
    case Access::random:
      return MADV_RANDOM;
    case Access::sequential:
      return MADV_SEQUENTIAL;
    default:
      return MADV_NORMAL;
  }
}

// Closes the descriptor on every return; the mapping does not need it.
struct MappedDescriptor {
  int number;
  ~MappedDescriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(std::filesystem::path path, Access access) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  MappedDescriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) refuse(path_, "open", errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) refuse(path_, "read its length", errno);
  if (!S_ISREG(status.st_mode)) throw Error("not a regular file").at(path_.string());
  auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number, 0);
  if (data == MAP_FAILED) refuse(path_, "map " + std::to_string(size) + " bytes", errno);
  buffer_ = Buffer::adopt(data, size, Memory::mapped, [data, size] { ::munmap(data, size); });
  if (access != Access::normal) advise(access);
}

Array MappedFile::array(DType dtype, const Shape& shape, std::size_t offset) const {
  auto bytes = static_cast<std::size_t>(shape.elements()) * item_size(dtype);
  if (offset > size() || bytes > size() - offset) {
    throw Error("the file has " + std::to_string(size()) + " bytes, but " +
                std::string(name_of(dtype)) + " " + to_string(shape) + " needs " +
                std::to_string(bytes) + " from offset " + std::to_string(offset))
        .at(path_.string());
  }
  return Array(dtype, shape, buffer_, offset);
}

void MappedFile::advise(Access access) const {
  if (size() > 0) (void)::madvise(buffer_.data(), size(), to_advice(access));
}

void let_go(std::span<const std::byte> mapped) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto before = (page - reinterpret_cast<std::uintptr_t>(mapped.data()) % page) % page;
  if (mapped.size() <= before) return;
  const std::size_t whole = (mapped.size() - before) / page * page;
  auto* begin = const_cast<std::byte*>(mapped.data() + before);  // NOLINT: forgotten, not changed
  if (whole > 0) (void)::madvise(begin, whole, MADV_DONTNEED);
}

void read_once(std::span<const std::byte> mapped,
               const std::function<void(std::span<const std::byte>)>& use) {
  constexpr std::size_t piece = 1 << 20;
  for (std::size_t at = 0; at < mapped.size(); at += piece) {
    auto bytes = mapped.subspan(at, std::min(piece, mapped.size() - at));
    use(bytes);
    let_go(bytes);
  }
}

std::uint64_t checksum_of_mapped(std::span<const std::byte> mapped) {
  Checksum sum;
  read_once(mapped, [&](auto piece) { sum.add(piece); });
  return sum.value();
}

void MappedFile::will_need(std::size_t offset, std::size_t bytes) const {
  if (offset >= size()) return;
  bytes = std::min(bytes, size() - offset);
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::size_t begin = offset / page * page;
  (void)::madvise(buffer_.data() + begin, offset + bytes - begin, MADV_WILLNEED);
}

}  // namespace millrace
