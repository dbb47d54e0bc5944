// Private: the file format of a shard: the payload (rows or Arrow messages), one line per source,
// and a tail with the checksums of both and of the plan that the shard belongs to.
#pragma once

#include "checksum.h"

#include <millrace/datasets/caches/cache_info.h>
#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/data/array.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace millrace::detail {

struct ShardTail {
  char magic[8];
  std::uint64_t plan, shard;
  std::uint64_t rows, payload_bytes, lines_bytes;
  std::uint64_t payload_xxh3, lines_xxh3;
  std::uint64_t tail_xxh3;  // of all members above
};
static_assert(sizeof(ShardTail) == 72);

void seal(ShardTail& tail);
// Reads only the tail. Nothing if the file is missing or belongs to another plan or shard.
std::optional<ShardTail> read_tail(const std::filesystem::path& path, std::uint64_t plan,
                                   std::int64_t shard);

// Encodes the rows of a cache format as bytes and gives them to `write` in order.
class Payload {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;
  virtual ~Payload() = default;
  virtual void append(const CacheSource& source, std::span<const Array> row) = 0;
  virtual void finish() = 0;
};
std::unique_ptr<Payload> dense_payload(Payload::Write write);
std::unique_ptr<Payload> arrow_payload(const CacheInfo& plan, Payload::Write write);

// A finished shard, mapped and checked.
struct OpenShard {
  MappedFile file;
  ShardTail tail;
  std::span<const std::byte> payload() const { return file.bytes().first(tail.payload_bytes); }
  std::string_view lines() const {
    auto bytes = file.bytes().subspan(tail.payload_bytes, tail.lines_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};
// Throws if the shard is damaged.
OpenShard open_shard(const std::filesystem::path& path, std::uint64_t plan, std::int64_t shard);

// Calls `use` for every line, without the line break.
void for_each_line(std::string_view lines, const std::function<void(std::string_view)>& use);

}  // namespace millrace::detail
