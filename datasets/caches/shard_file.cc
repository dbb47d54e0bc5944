#include "shard_file.h"

#include <millrace/pipeline/base/error.h>

#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::detail {

namespace {

constexpr char shard_magic[8] = {'M', 'R', 'S', 'H', 'A', 'R', 'D', '1'};

std::uint64_t tail_checksum(const ShardTail& tail) {
  return checksum_of(std::as_bytes(std::span(&tail, 1)).first(offsetof(ShardTail, tail_xxh3)));
}

bool fits(const ShardTail& tail, std::uint64_t plan, std::int64_t shard, std::uint64_t size) {
  return std::memcmp(tail.magic, shard_magic, sizeof shard_magic) == 0 &&
         tail.tail_xxh3 == tail_checksum(tail) && tail.plan == plan &&
         tail.shard == static_cast<std::uint64_t>(shard) && tail.payload_bytes <= size &&
         tail.lines_bytes <= size &&
         tail.payload_bytes + tail.lines_bytes + sizeof(ShardTail) == size;
}

// Stores rows unchanged, one after the other.
class DensePayload : public Payload {
 public:
  explicit DensePayload(Write write) : write_(std::move(write)) {}
  void append(const CacheSource&, std::span<const Array> row) override {
    write_({row[0].data(), row[0].bytes()});
  }
  void finish() override {}

 private:
  Write write_;
};

}  // namespace

std::unique_ptr<Payload> dense_payload(Payload::Write write) {
  return std::make_unique<DensePayload>(std::move(write));
}

void seal(ShardTail& tail) {
  std::memcpy(tail.magic, shard_magic, sizeof shard_magic);
  tail.tail_xxh3 = tail_checksum(tail);
}

std::optional<ShardTail> read_tail(const std::filesystem::path& path, std::uint64_t plan,
                                   std::int64_t shard) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat status {};
  ShardTail tail{};
  bool read = ::fstat(file, &status) == 0 && status.st_size >= off_t{sizeof tail} &&
              ::pread(file, &tail, sizeof tail, status.st_size - off_t{sizeof tail}) ==
                  ssize_t{sizeof tail};
  ::close(file);
  if (!read || !fits(tail, plan, shard, static_cast<std::uint64_t>(status.st_size))) {
    return std::nullopt;
  }
  return tail;
}

OpenShard open_shard(const std::filesystem::path& path, std::uint64_t plan, std::int64_t shard) {
  OpenShard open{MappedFile(path, Access::sequential), {}};
  auto bytes = open.file.bytes();
  bool whole = bytes.size() >= sizeof(ShardTail);
  if (whole) std::memcpy(&open.tail, bytes.last(sizeof(ShardTail)).data(), sizeof(ShardTail));
  if (!whole || !fits(open.tail, plan, shard, bytes.size())) {
    throw Error("the shard is cut off or of another run").at(path.string());
  }
  if (checksum_of_mapped(open.payload()) != open.tail.payload_xxh3 ||
      checksum_of(open.lines()) != open.tail.lines_xxh3) {
    throw Error("the shard is damaged (checksum mismatch)").at(path.string());
  }
  return open;
}

void for_each_line(std::string_view lines, const std::function<void(std::string_view)>& use) {
  while (!lines.empty()) {
    std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) end = lines.size();
    use(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace millrace::detail
