// The samples of the claimed shards, in order, as one data set for the loader.
#pragma once

#include "tools/preprocess/shards/claims.h"
#include "tools/preprocess/shards/targets.h"

#include <millrace/pipeline/data/dataset.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

class ShardDataset : public Dataset {
 public:
  struct Segment {
    Targets::Target* target;
    std::int64_t shard;         // of the target
    std::int64_t first_source;  // of the target
    std::int64_t first, end;    // of this data set
  };

  ShardDataset(const Job& job, Targets& targets, const Shards& shards)
      : data_(job.data), source_of_(job.source) {
    for (std::int64_t number : shards) {
      auto [target, shard] = targets.find(number);
      auto range = target->writer->range(shard);
      auto count = static_cast<std::int64_t>(range.size());
      segments_.push_back({target, shard, range.front(), size_, size_ + count});
      size_ += count;
    }
  }

  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return data_->schema(); }
  // The inner data set gets its own index, so that a sample makes the same random choices in every
  // run.
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    LoadContext inner = context;
    inner.index = original(index);
    return data_->load(inner.index, inner, sample);
  }
  std::string describe(std::int64_t index) const override {
    return data_->describe(original(index));
  }
  std::int64_t samples_per_task() const override { return data_->samples_per_task(); }
  std::int64_t cost(std::int64_t index) const override { return source_of_(original(index)).bytes; }

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

 private:
  AnyDataset data_;
  std::function<CacheSource(std::int64_t)> source_of_;
  std::vector<Segment> segments_;
  std::int64_t size_ = 0;
};

}  // namespace millrace
