// Private: one shard on the disk: the payload (rows, or Arrow messages), then one line per source,
// then a tail that proves both and tells which plan the shard belongs to.
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

namespace millrace {

struct ShardTail {
  char magic[8];
  std::uint64_t plan, shard;
  std::uint64_t rows, payload_bytes, lines_bytes;
  std::uint64_t payload_xxh3, lines_xxh3;
  std::uint64_t tail_xxh3;  // of all before
};
static_assert(sizeof(ShardTail) == 72);

void seal(ShardTail& tail);
// Reads the tail alone: nothing where there is no file, or one that does not fit.
std::optional<ShardTail> read_tail(const std::filesystem::path& path, std::uint64_t plan,
                                   std::int64_t shard);

// How rows of a format become bytes. `write` takes them in order.
class Payload {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;
  virtual ~Payload() = default;
  virtual void append(const CacheSource& source, std::span<const Array> row) = 0;
  virtual void finish() = 0;
};
std::unique_ptr<Payload> dense_payload(Payload::Write write);
std::unique_ptr<Payload> arrow_payload(const CacheInfo& plan, Payload::Write write);

// A finished shard, mapped and proven by its checksums.
struct OpenShard {
  MappedFile file;
  ShardTail tail;
  std::span<const std::byte> payload() const { return file.bytes().first(tail.payload_bytes); }
  std::string_view lines() const {
    auto bytes = file.bytes().subspan(tail.payload_bytes, tail.lines_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};
// Throws if it is damaged.
OpenShard open_shard(const std::filesystem::path& path, std::uint64_t plan, std::int64_t shard);

// Calls `use` for every line, without its end.
void for_each_line(std::string_view lines, const std::function<void(std::string_view)>& use);

}  // namespace millrace
