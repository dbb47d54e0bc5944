#include "bucket_order.h"

#include <millrace/pipeline/base/random.h>

#include <algorithm>
#include <utility>

namespace millrace::detail {

// Note [buckets]
// The keyed permutation of an epoch is cut into windows of several batches. The samples of a window
// are sorted by length and cut into batches, and the batches are shuffled by another keyed
// permutation. Samples that do not fill a batch come last in the epoch; they are taken from a
// random place among the sorted lengths. The order depends on (seed, epoch), the lengths, and the
// batch size and window with which the epoch began, which a Position carries. Windows have about
// equal sizes: a tiny last window would need the most padding.
//
// A random amount of up to 5 % is added to each length. Without it, a data set that fits into one
// window would have the same batches in every epoch.

namespace {

constexpr double jitter = 0.05;

// Uniform in [0, 1), from (seed, epoch, sample).
double draw(const Position& key, std::int64_t index) {
  const std::uint64_t bits =
      mix(mix(key.seed, static_cast<std::uint64_t>(key.epoch)), static_cast<std::uint64_t>(index));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

std::int64_t BucketOrder::windows(const Position& key) const {
  return std::max<std::int64_t>(1, (size_ / key.bucket + key.window - 1) / key.window);
}

// Where a window begins; the end of the last is the end of the epoch.
std::int64_t BucketOrder::border(const Position& key, std::int64_t number) const {
  const std::int64_t batches = size_ / key.bucket, count = windows(key);
  return number == count ? size_ : batches * number / count * key.bucket;
}

std::shared_ptr<const BucketOrder::Window> BucketOrder::window(const Position& at,
                                                               std::int64_t position) {
  const Position key{.seed = at.seed, .epoch = at.epoch, .bucket = at.bucket, .window = at.window};
  std::lock_guard lock(mutex_);
  for (const auto& kept : kept_) {
    if (kept->key == key && kept->holds(position)) return kept;
  }
  const std::int64_t batches = size_ / key.bucket;
  const std::int64_t batch = std::min(position / key.bucket, batches - 1);
  const std::int64_t number = batches == 0 ? 0 : ((batch + 1) * windows(key) - 1) / batches;
  constexpr std::size_t most = 4;
  if (kept_.size() == most) kept_.erase(kept_.begin());
  kept_.push_back(make(key, number));
  return kept_.back();
}

std::shared_ptr<const BucketOrder::Window> BucketOrder::make(const Position& key,
                                                             std::int64_t number) const {
  auto window = std::make_shared<Window>();
  window->key = key;
  window->first = border(key, number);
  const std::int64_t count = border(key, number + 1) - window->first;
  const Permutation order(size_, key.seed, key.epoch);
  std::vector<std::pair<double, std::int64_t>> sorted;  // (length, position in the epoch)
  for (std::int64_t i = window->first; i < window->first + count; ++i) {
    const std::int64_t index = shuffle_ ? order(i) : i;
    const auto length = static_cast<double>(lengths_(index, key.epoch));
    sorted.emplace_back(length * (1 + (shuffle_ ? jitter * draw(key, index) : 0)), index);
  }
  std::ranges::stable_sort(sorted, {}, &std::pair<double, std::int64_t>::first);

  const std::int64_t batches = count / key.bucket, rest = count % key.bucket;
  const std::uint64_t seed = mix(mix(key.seed, 0xB0C4E7), static_cast<std::uint64_t>(number));
  // The samples that fill no batch are taken after this batch.
  const std::int64_t split =
      rest == 0 ? batches : Random(seed, key.epoch, 0, "rest").below(batches + 1);
  const auto take = [&](std::int64_t from, std::int64_t n) {
    for (std::int64_t i = from; i < from + n; ++i) {
      window->indices.push_back(sorted[static_cast<std::size_t>(i)].second);
    }
  };
  window->indices.reserve(sorted.size());
  const Permutation turn(batches, seed, key.epoch);
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::int64_t batch = shuffle_ ? turn(i) : i;
    take(batch * key.bucket + (batch >= split ? rest : 0), key.bucket);
  }
  take(split * key.bucket, rest);
  return window;
}

}  // namespace millrace::detail
