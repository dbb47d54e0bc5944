// Private: caches that are one array in a file, .npy or raw, with a description file and a list of
// sources beside it.
#pragma once

#include <millrace/datasets/caches/cache_description.h>
#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/base/durable_file.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

struct DenseCache {
  Array rows;  // [rows, ...], keeps the mapping alive
  MappedFile file;
  std::optional<CacheDescription> description;  // nothing: not written by Millrace
};
// Checks magic, version, type, counts and length, and the description if there is one.
DenseCache open_dense(const std::filesystem::path& path, CacheFormat format, Access access);
// Opens a raw file with rows of the given field; `rows` = -1: computed from the size of the file.
DenseCache open_raw(const std::filesystem::path& path, const Field& field, std::int64_t rows,
                    Access access);
// Compares every part with its checksum. Returns one line for each part that differs.
std::vector<std::string> verify_dense(const CacheDescription& description,
                                      std::span<const std::byte> file);
std::optional<CacheDescription> read_description(const std::filesystem::path& cache);

struct JoinedShards {
  std::vector<std::filesystem::path> paths;
  std::uint64_t plan = 0;
};
// Writes the final file shard by shard, so that most of it can be on disk before the last shard is
// finished.
class DenseJoiner {
 public:
  // `most_rows`: the largest number of rows, for which the header reserves space.
  DenseJoiner(const CacheInfo& plan, std::int64_t most_rows, const std::filesystem::path& folder,
              const std::filesystem::path& out);
  // Adds the next shard, which must have this plan checksum, and verifies what was written.
  void add(const std::filesystem::path& shard, std::uint64_t plan);
  std::size_t added() const { return description_.info.parts.size(); }
  // True if the header of a file with `rows` rows fits into the reserved space.
  bool has_room_for(std::int64_t rows) const;
  // After the last shard: gives the file, the description and the list of sources their names.
  CacheDescription finish(CacheDescription description);

 private:
  std::string header(std::int64_t rows) const;

  CacheDescription description_;  // of the shards added so far
  std::filesystem::path out_;
  DurableFile data_, sources_, description_file_;
  Checksum listed_;
};

// Write the final file, and join_dense also the files beside it. `folder` holds them until they are
// complete. `begun` may have the first shards already.
void join_dense(CacheDescription& description, const JoinedShards& shards,
                const std::filesystem::path& folder, const std::filesystem::path& out,
                std::unique_ptr<DenseJoiner> begun);
void join_arrow(CacheDescription& description, const JoinedShards& shards,
                const std::filesystem::path& folder, const std::filesystem::path& out);
// Adds a shard's failures to the description.
void count_failures(CacheDescription& description, std::string_view lines,
                    const std::filesystem::path& path);

}  // namespace millrace::detail
