#include "bucket_order.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/order/sampler.h>

#include <algorithm>
#include <string>
#include <utility>

namespace millrace {

namespace {

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error(problem).stage("sampler").kind(ErrorKind::usage);
}

}  // namespace

Sampler::Sampler(SamplerOptions given) : options_(std::move(given)) {
  const SamplerOptions& options = options_;
  auto number = [](std::int64_t value) { return std::to_string(value); };
  require(options.size > 0, "the dataset is empty (size " + number(options.size) + ")");
  require(options.batch_size > 0,
          "batch_size must be at least 1, but is " + number(options.batch_size));
  require(options.world > 0, "world must be at least 1, but is " + number(options.world));
  require(options.rank >= 0 && options.rank < options.world,
          "rank must be less than world (" + number(options.world) + "), but is " +
              number(options.rank));
  require(options.group > 0, "group must be at least 1, but is " + number(options.group));
  require(options.batch_size <= std::int64_t{1} << 31 && options.world <= std::int64_t{1} << 20 &&
              options.group <= std::int64_t{1} << 10,
          "batch_size must be under 2^31, world under 2^20 and group under 2^10");
  require(options.bucket_window >= 0 && options.bucket_window <= std::int64_t{1} << 20,
          "bucket_window must be 0 to 2^20 batches, but is " + number(options.bucket_window));
  require(options.bucket_window == 0 || options.lengths, "bucket_window needs lengths");
  if (options.lengths) {
    buckets_ =
        std::make_shared<detail::BucketOrder>(options.size, options.shuffle, options.lengths);
  }
  if (options.tail == Tail::drop) {
    std::int64_t wanted = options.batch_size * options.world * options.group;
    require(wanted <= options.size,
            "no batch would ever come: one step takes " + number(wanted) + " samples (batch_size " +
                number(options.batch_size) + " x " + number(options.world) + " ranks" +
                (options.group > 1 ? " x " + number(options.group) + " batches" : "") +
                "), the dataset has " + number(options.size) +
                ", and tail = drop leaves out what does not fill a batch. Lower batch_size or "
                "choose tail = shorten");
  }
}

std::optional<Step> Sampler::step(const Position& from) const {
  Position at = from;
  if (at.next == 0 && at.part == 0) {
    at.window = options_.bucket_window;
    at.bucket = at.window > 0 ? options_.batch_size : 0;
  }
  const std::int64_t left = options_.size - at.next;
  const std::int64_t parts = options_.world * options_.group;
  const bool whole = left >= options_.batch_size * parts;
  if (!whole && (left <= 0 || options_.tail == Tail::drop)) return std::nullopt;
  Step step{.at = at, .after = at};
  step.rows =
      whole || options_.tail == Tail::fill ? options_.batch_size : (left + parts - 1) / parts;
  step.first = at.next + (at.part * options_.world + options_.rank) * step.rows;
  step.wrapped = std::clamp<std::int64_t>(step.first + step.rows - options_.size, 0, step.rows);
  if (++step.after.part < options_.group) return step;
  step.after.part = 0;
  step.after.next = std::min(at.next + parts * step.rows, options_.size);
  if (step.after.next == options_.size) step.after = next_epoch(at);
  return step;
}

std::int64_t Sampler::steps_per_epoch() const {
  const std::int64_t whole = options_.batch_size * options_.world * options_.group;
  const std::int64_t groups =
      options_.tail == Tail::drop ? options_.size / whole : (options_.size + whole - 1) / whole;
  return groups * options_.group;
}

Sampler::Order::Order(const Sampler& sampler, const Step& step)
    : first_(step.first),
      size_(sampler.options_.size),
      shuffle_(sampler.options_.shuffle),
      bucketed_(step.at.window > 0),
      permutation_(size_, step.at.seed, step.at.epoch),
      at_(step.at),
      buckets_(sampler.buckets_) {
  if (!bucketed_ || buckets_) return;  // before the message is built: this runs for every row
  require(false, "this epoch began with buckets of similar length, and can only go on with them");
}

std::int64_t Sampler::Order::in_bucket(std::int64_t place) const {
  return buckets_->window(at_, place)->at(place);
}

std::int64_t Sampler::index(const Step& step, std::int64_t row) const {
  return Order(*this, step).index(row);
}

std::int64_t Sampler::replacement(const Position& at, std::int64_t position,
                                  std::int64_t attempt) const {
  Random random(mix(at.seed, static_cast<std::uint64_t>(attempt)), at.epoch, position,
                "replacement");
  return random.below(options_.size);
}

}  // namespace millrace
