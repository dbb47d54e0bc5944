// Which shards this process makes. Making a shard twice costs time and harms nothing: the bytes are
// the same, and it appears under its name in one step. So claims only have to be good, not perfect.
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
  // Some of `missing` that are ours to make now. Nothing, if others have them all.
  virtual Shards take(const Shards& missing) = 0;
  // True if somebody else makes what take() did not give: the caller waits and asks again.
  virtual bool others_work() = 0;
  // A rank died, and that is why this one is being told to stop: see Note [a rank that dies].
  virtual bool somebody_died() { return false; }
};

// Every shard.
std::unique_ptr<Claims> claim_all();
// The i-th of n parts, for job arrays without a network.
std::unique_ptr<Claims> claim_part(std::int64_t part, std::int64_t parts);
// Whatever the other ranks have not taken. `lock_file` serves when the store is gone;
// `nothing_left` tells a rank that comes late not to wait for a store that went with the work.
std::unique_ptr<Claims> claim_by_rank(const Ranks& ranks, const std::filesystem::path& lock_file,
                                      const std::function<bool()>& nothing_left);

}  // namespace millrace
