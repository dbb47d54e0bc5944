// Decides which samples are in which batch. The order of an epoch is a keyed permutation. A step
// takes its next `world * batch_size` positions and gives rank r the r-th part. A Position is
// global: a run can continue with another world size, batch size, number of threads or prefetch
// depth and still sees every remaining sample once. A trainer that accumulates gradients over n
// batches sets `group` to n: an epoch then ends between groups, and 2 ranks see the same batches as
// 1 rank with groups twice as long. All of this holds with a bucket_window too.
//
//   Sampler sampler({.size = 1000, .batch_size = 32, .shuffle = true, .rank = 0, .world = 2});
//   Position at{.seed = 42};
//   std::int64_t sum = 0;
//   while (auto step = sampler.step(at)) {
//     for (int row = 0; row < step->rows; ++row) sum += sampler.index(*step, row);
//     at = step->after;
//   }
#pragma once

#include <millrace/pipeline/order/permutation.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace millrace {

// A position in a run: the next sample to be loaded, counted over all ranks.
struct Position {
  std::uint64_t seed = 42;
  std::int64_t epoch = 0;
  std::int64_t next = 0;  // number of positions of the epoch that are done
  std::int64_t part = 0;  // number of batches done in the group that begins at `next`
  // The batch size and bucket_window with which the epoch began; it keeps them to its end. 0: it
  // has no buckets.
  std::int64_t bucket = 0, window = 0;

  friend bool operator==(const Position&, const Position&) = default;
};
// False for values that no sampler produces, e.g. in a damaged checkpoint.
inline bool has_sound_buckets(const Position& at) {
  return at.window >= 0 && at.bucket >= 0 && (at.window > 0) == (at.bucket > 0);
}

// What happens to the samples at the end of an epoch that do not fill a batch on every rank. Every
// rank gets the same number of batches in all three cases.
enum class Tail {
  shorten,  // smaller last batches, all of the same size; at most world * group - 1 rows repeat
  drop,     // they are left out of this epoch
  fill,     // a full last batch; the missing rows repeat samples from the start of the epoch
};

// Returns the length of the sample that an epoch has at an index; see Dataset::length.
using SampleLengths = std::function<std::int64_t(std::int64_t index, std::int64_t epoch)>;

struct SamplerOptions {
  std::int64_t size = 0;
  std::int64_t batch_size = 1;
  bool shuffle = false;
  Tail tail = Tail::shorten;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t group = 1;  // number of batches that end an epoch together
  // Number of batches whose samples are sorted by length together; 0: no buckets.
  std::int64_t bucket_window = 0;
  SampleLengths lengths{};  // needed for buckets
};

// The part of a step that one rank loads.
struct Step {
  Position at, after;
  std::int64_t first = 0;    // position of row 0; the rows have consecutive positions
  std::int64_t rows = 0;     // of this rank
  std::int64_t wrapped = 0;  // number of rows at the end that repeat samples of the epoch's start
};

namespace detail {
class BucketOrder;
}  // namespace detail

class Sampler {
 public:
  // Throws an Error that names the options if they do not give a single batch.
  explicit Sampler(SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  // The step at a position, or nothing at the end of the epoch.
  std::optional<Step> step(const Position& at) const;
  // Where the next epoch starts.
  static Position next_epoch(const Position& at) { return {at.seed, at.epoch + 1}; }
  std::int64_t steps_per_epoch() const;

  // The position of a row of a step in the epoch, and the index of the sample there.
  std::int64_t position(const Step& step, std::int64_t row) const {
    return (step.first + row) % options_.size;
  }
  std::int64_t index(const Step& step, std::int64_t row) const;
  // The same for many rows of a step: what they share is computed once.
  class Order {
   public:
    Order(const Sampler& sampler, const Step& step);
    std::int64_t index(std::int64_t row) const {
      std::int64_t place = (first_ + row) % size_;
      if (bucketed_) return in_bucket(place);
      return shuffle_ ? permutation_(place) : place;
    }

   private:
    std::int64_t in_bucket(std::int64_t place) const;

    std::int64_t first_, size_;
    bool shuffle_, bucketed_;
    Permutation permutation_;
    Position at_;
    std::shared_ptr<detail::BucketOrder> buckets_;
  };
  // The n-th replacement of a sample that failed: a pure function of (seed, epoch, position,
  // attempt).
  std::int64_t replacement(const Position& at, std::int64_t position, std::int64_t attempt) const;

 private:
  SamplerOptions options_;
  std::shared_ptr<detail::BucketOrder> buckets_;
};

}  // namespace millrace
