// Decides which shards this process makes. Making a shard twice costs time but does no harm: the
// bytes are the same and the file is renamed into place. So claims need not be exclusive.
#pragma once

#include <millrace/training/distributed/rank_store.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

using Shards = std::vector<std::int64_t>;

class Claims {
 public:
  virtual ~Claims() = default;
  // Claims some of the `missing` shards for this process; empty if others have claimed them all.
  virtual Shards take(const Shards& missing) = 0;
  // True if other processes are making the rest: the caller waits and calls take() again.
  virtual bool others_work() = 0;
  // True if a rank died, which makes torchrun stop this one: see Note [a rank that dies].
  virtual bool somebody_died() { return false; }
};

// Claims every shard.
std::unique_ptr<Claims> claim_all();
// Claims part i of n, for job arrays without a network.
std::unique_ptr<Claims> claim_part(std::int64_t part, std::int64_t parts);
// Claims what the other ranks have not claimed. `lock_file` replaces the store when that is gone;
// `nothing_left` lets a late rank end without waiting for a store that has ended with the work.
std::unique_ptr<Claims> claim_by_rank(const Ranks& ranks, const std::filesystem::path& lock_file,
                                      const std::function<bool()>& nothing_left);

}  // namespace millrace
