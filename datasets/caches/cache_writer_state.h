// Private: the state of a CacheWriter, which its ShardWriters read when they start.
#pragma once

#include "cache_description.h"

#include <millrace/datasets/arrays/dense_cache.h>
#include <millrace/datasets/caches/cache_writer.h>

#include <cstdint>
#include <filesystem>
#include <memory>

namespace millrace {

struct CacheWriter::State {
  std::filesystem::path out, folder;
  detail::CacheDescription description;  // as planned: no rows yet
  std::uint64_t plan = 0;                // the checksum of the plan, stored in every shard
  bool complete = false;
  std::unique_ptr<detail::DenseJoiner> ahead;  // the part of the final file that join_ahead() wrote
  bool may_be_ahead = true;

  std::filesystem::path shard_path(std::int64_t shard) const;
  std::filesystem::path plan_path() const { return folder / "plan.json"; }
  std::int64_t shards() const {
    const CacheInfo& info = description.info;
    return (info.sources + info.shard_rows - 1) / info.shard_rows;
  }

  // Removes an earlier cache and its shards. Throws if Millrace did not write them.
  void remove_old() const;
  void refuse_if_other(const std::filesystem::path& where, const CacheInfo& found) const;
  void look_at_finished();
  void open_folder();
  void check_room() const;
  void remove_folder() const;
};

}  // namespace millrace
