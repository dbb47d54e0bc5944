// Private: caches that are one array in a file, .npy or raw, with a description and a list of
// sources beside.
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

namespace millrace {

struct DenseCache {
  Array rows;  // [rows, ...], keeps the mapping
  MappedFile file;
  std::optional<CacheDescription> description;  // none: written by others
};
// Proves magic, version, type, counts and length, and the description if there is one.
DenseCache open_dense(const std::filesystem::path& path, CacheFormat format, Access access);
// A raw file of which the caller knows what a row is; `rows` = -1: as many as there are.
DenseCache open_raw(const std::filesystem::path& path, const Field& field, std::int64_t rows,
                    Access access);
// Compares every part with its checksum; one line for each that differs.
std::vector<std::string> verify_dense(const CacheDescription& description,
                                      std::span<const std::byte> file);
std::optional<CacheDescription> read_side_file(const std::filesystem::path& cache);

struct JoinedShards {
  std::vector<std::filesystem::path> paths;
  std::uint64_t plan = 0;
};
// The final file in work, shard after shard, so that most of it can be on the disk before the last
// shard is made.
class DenseJoiner {
 public:
  // `most_rows`: the header has room for so many.
  DenseJoiner(const CacheInfo& plan, std::int64_t most_rows, const std::filesystem::path& folder,
              const std::filesystem::path& out);
  // The next shard, of the plan with this checksum. It is read back at once.
  void add(const std::filesystem::path& shard, std::uint64_t plan);
  std::size_t added() const { return description_.info.parts.size(); }
  // Whether the header of a file of so many rows has the room that was left for it.
  bool has_room_for(std::int64_t rows) const;
  // Once all are added: gives the file and those beside it their names.
  CacheDescription finish(CacheDescription description);

 private:
  std::string header(std::int64_t rows) const;

  CacheDescription description_;  // of what was added
  std::filesystem::path out_;
  DurableFile data_, sources_, side_;
  Checksum listed_;
};

// Makes the final file and those beside it. `folder` holds them until they are complete. `begun`
// may have some of it already.
void join_dense(CacheDescription& description, const JoinedShards& shards,
                const std::filesystem::path& folder, const std::filesystem::path& out,
                std::unique_ptr<DenseJoiner> begun);
void join_arrow(CacheDescription& description, const JoinedShards& shards,
                const std::filesystem::path& folder, const std::filesystem::path& out);
// Counts a shard's failures into the description.
void count_failures(CacheDescription& description, std::string_view lines,
                    const std::filesystem::path& path);

}  // namespace millrace
