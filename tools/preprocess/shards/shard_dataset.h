// The samples of the claimed shards, in order, as one data set for the loader.
#pragma once

#include "tools/preprocess/shards/claims.h"
#include "tools/preprocess/shards/targets.h"

#include <millrace/pipeline/data/adapter.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

class ShardDataset : public Adapter {
 public:
  struct Segment {
    Targets::Target* target;
    std::int64_t shard;         // of the target
    std::int64_t first_source;  // of the target
    std::int64_t first, end;    // of this data set
  };

  ShardDataset(const Job& job, Targets& targets, const Shards& shards)
      : Adapter(job.data), source_of_(job.source) {
    for (std::int64_t number : shards) {
      auto [target, shard] = targets.find(number);
      auto range = target->writer->range(shard);
      auto count = static_cast<std::int64_t>(range.size());
      segments_.push_back({target, shard, range.front(), size_, size_ + count});
      size_ += count;
    }
  }

  std::int64_t size() const override { return size_; }
  // Empty: the run records what the whole job left out, once, and not with every claim.
  std::vector<LeftOut> left_out() const override { return {}; }
  std::int64_t cost(std::int64_t index, std::int64_t /*epoch*/ = 0) const override {
    return source_of_(original(index)).bytes;
  }

  const Segment& segment(std::int64_t index) const {
    return *std::ranges::upper_bound(segments_, index, {}, &Segment::end);
  }
  // source(): index of the source in its target. original(): index of the sample in the job's data
  // set.
  std::int64_t source(std::int64_t index) const {
    const Segment& s = segment(index);
    return s.first_source + index - s.first;
  }
  std::int64_t original(std::int64_t index) const {
    const Segment& s = segment(index);
    return s.target->index(s.first_source + index - s.first);
  }

 protected:
  Target target(std::int64_t index, std::int64_t epoch) const override {
    return {.index = original(index), .epoch = epoch};
  }

 private:
  std::function<CacheSource(std::int64_t)> source_of_;
  std::vector<Segment> segments_;
  std::int64_t size_ = 0;
};

}  // namespace millrace
