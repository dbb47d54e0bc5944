// Which sample stands where. The order of an epoch is a keyed permutation; a step takes the next
// `world * batch_size` positions of it and gives rank r the r-th part. A Position is global, so a
// run can go on with another world size, batch size, thread count or prefetch depth and still see
// every remaining sample once. A trainer that accumulates gradients over n batches asks for groups
// of n: an epoch's end then falls between groups, and 2 ranks see the very batches that 1 rank sees
// with groups twice as long. With a bucket_window, samples of similar length share batches: all of
// this still holds.
//
//   Sampler sampler({.size = 1000, .batch_size = 32, .shuffle = true, .rank = 0, .world = 2});
//   Position at{.seed = 42};
//   while (auto step = sampler.step(at)) {
//     for (int row = 0; row < step->rows; ++row) use(sampler.index(*step, row));
//     at = step->after;
//   }
#pragma once

#include <millrace/pipeline/order/permutation.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace millrace {

// A coordinate in a run: the next sample to be read, counted over all ranks.
struct Position {
  std::uint64_t seed = 42;
  std::int64_t epoch = 0;
  std::int64_t next = 0;  // how many positions of the epoch's order are done
  std::int64_t part = 0;  // how many batches of the group that begins there are done
  // How the epoch's order was bucketed by length when it began: by batches of so many samples, of
  // which so many are sorted together. An epoch that has begun keeps them; 0: it is not bucketed.
  std::int64_t bucket = 0, window = 0;

  friend bool operator==(const Position&, const Position&) = default;
};
// Of a position that was read from somewhere.
inline bool has_sound_buckets(const Position& at) {
  return at.window >= 0 && at.bucket >= 0 && (at.window > 0) == (at.bucket > 0);
}

// What happens to the samples at an epoch's end that do not fill a batch on every rank. Every rank
// gets the same number of batches in all three cases.
enum class Tail {
  shorten,  // smaller last batches, all of one size; at most world * group - 1 rows repeat
  drop,     // they are left out of this epoch
  fill,     // a full last batch; the missing rows repeat samples from the epoch's start
};

// The length of the sample that an epoch has at an index; see Dataset::length.
using SampleLengths = std::function<std::int64_t(std::int64_t index, std::int64_t epoch)>;

struct SamplerOptions {
  std::int64_t size = 0;
  std::int64_t batch_size = 1;
  bool shuffle = false;
  Tail tail = Tail::shorten;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t group = 1;  // so many batches end together, as one larger batch would
  // Of so many batches at a time, samples of similar length share batches; 0: any do.
  std::int64_t bucket_window = 0;
  SampleLengths lengths{};  // for that
};

// One rank's share of one step.
struct Step {
  Position at, after;
  std::int64_t first = 0;    // the position of row 0; rows follow one another
  std::int64_t rows = 0;     // of this rank
  std::int64_t wrapped = 0;  // how many rows at the end repeat samples from the epoch's start
};

class BucketOrder;

class Sampler {
 public:
  // Throws if the numbers cannot give a single batch, naming them.
  explicit Sampler(SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  // The step at a position, or nothing at the epoch's end.
  std::optional<Step> step(const Position& at) const;
  // Where the next epoch starts.
  static Position next_epoch(const Position& at) { return {at.seed, at.epoch + 1}; }
  std::int64_t steps_per_epoch() const;

  // The position in the epoch's order that a row of a step stands for, and the sample there.
  std::int64_t position(const Step& step, std::int64_t row) const {
    return (step.first + row) % options_.size;
  }
  std::int64_t index(const Step& step, std::int64_t row) const;
  // The same for many rows: what does not change from row to row is made once.
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
    std::shared_ptr<BucketOrder> buckets_;
  };
  // The sample that takes the place of one that failed, for the n-th time: a pure function of
  // (seed, epoch, position, attempt).
  std::int64_t replacement(const Position& at, std::int64_t position, std::int64_t attempt) const;

 private:
  SamplerOptions options_;
  std::shared_ptr<BucketOrder> buckets_;
};

}  // namespace millrace
