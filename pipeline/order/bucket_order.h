// Private to the sampler: an order of an epoch in which samples of similar length are neighbours,
// so that batches need little padding. See Note [buckets] in bucket_order.cc.
#pragma once

#include <millrace/pipeline/order/sampler.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace::detail {

class BucketOrder {
 public:
  // The samples at positions [first, first + indices.size()) of an epoch.
  struct Window {
    Position key;  // seed, epoch, bucket and window of the epoch
    std::int64_t first = 0;
    std::vector<std::int64_t> indices;

    bool holds(std::int64_t position) const {
      return position >= first && position < first + static_cast<std::int64_t>(indices.size());
    }
    std::int64_t at(std::int64_t position) const {
      return indices[static_cast<std::size_t>(position - first)];
    }
  };

  BucketOrder(std::int64_t size, bool shuffle, SampleLengths lengths)
      : size_(size), shuffle_(shuffle), lengths_(std::move(lengths)) {}

  // The window that contains `position`, in the epoch of `at`. Thread-safe; caches the last few.
  std::shared_ptr<const Window> window(const Position& at, std::int64_t position);

 private:
  std::shared_ptr<const Window> make(const Position& key, std::int64_t number) const;
  std::int64_t windows(const Position& key) const;
  std::int64_t border(const Position& key, std::int64_t number) const;

  std::int64_t size_;
  bool shuffle_;
  SampleLengths lengths_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Window>> kept_;  // the newest last
};

}  // namespace millrace::detail
