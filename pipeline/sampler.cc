#include <millrace/pipeline/error.h>
#include <millrace/pipeline/random.h>
#include <millrace/pipeline/sampler.h>

#include <algorithm>
#include <string>

namespace millrace {

namespace {

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error(problem).stage("sampler").kind(ErrorKind::usage);
}

}  // namespace

Sampler::Sampler(SamplerOptions options) : options_(options) {
  auto number = [](std::int64_t value) { return std::to_string(value); };
  require(options.size > 0, "the dataset is empty (size " + number(options.size) + ")");
  require(options.batch_size > 0,
          "batch_size must be at least 1, but is " + number(options.batch_size));
  require(options.world > 0, "world must be at least 1, but is " + number(options.world));
  require(options.rank >= 0 && options.rank < options.world,
          "rank must be less than world (" + number(options.world) + "), but is " +
              number(options.rank));
  require(options.batch_size <= std::int64_t{1} << 31 && options.world <= std::int64_t{1} << 31,
          "batch_size and world must be under 2^31");
  if (options.tail == Tail::drop) {
    std::int64_t wanted = options.batch_size * options.world;
    require(wanted <= options.size,
            "no batch would ever come: one step takes " + number(wanted) + " samples (batch_size " +
                number(options.batch_size) + " x " + number(options.world) +
                " ranks), the dataset has " + number(options.size) +
                ", and tail = drop leaves out what does not fill a batch. Lower batch_size or "
                "choose tail = shorten");
  }
}

std::optional<Step> Sampler::step(const Position& at) const {
  std::int64_t left = options_.size - at.next;
  std::int64_t whole = options_.batch_size * options_.world;
  Step step{.at = at, .after = at};
  if (left >= whole) {
    step.rows = options_.batch_size;
    step.first = at.next + options_.rank * options_.batch_size;
    step.after.next = at.next + whole;
  } else if (left <= 0 || options_.tail == Tail::drop) {
    return std::nullopt;
  } else {
    step.rows = options_.tail == Tail::fill ? options_.batch_size
                                            : (left + options_.world - 1) / options_.world;
    step.first = at.next + options_.rank * step.rows;
    step.wrapped = std::clamp<std::int64_t>(step.first + step.rows - options_.size, 0, step.rows);
    step.after.next = options_.size;
  }
  if (step.after.next == options_.size) step.after = next_epoch(at);
  return step;
}

std::int64_t Sampler::steps_per_epoch() const {
  std::int64_t whole = options_.batch_size * options_.world;
  return options_.tail == Tail::drop ? options_.size / whole : (options_.size + whole - 1) / whole;
}

Sampler::Order::Order(const Sampler& sampler, const Step& step)
    : first_(step.first),
      size_(sampler.options_.size),
      shuffle_(sampler.options_.shuffle),
      permutation_(size_, step.at.seed, step.at.epoch) {}

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
