#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/order/permutation.h>

#include <algorithm>
#include <cmath>

namespace millrace {

namespace {

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error("mixture: " + problem).kind(ErrorKind::usage);
}

// How many of the first n items a share takes, so that every stretch has its due within one item.
std::int64_t taken(std::int64_t n, double share) {
  return static_cast<std::int64_t>(std::floor(static_cast<long double>(n) * share));
}

}  // namespace

Mixture::Mixture(std::vector<Part> parts, MixtureOptions options)
    : parts_(std::move(parts)), size_(options.size), seed_(options.seed) {
  require(!parts_.empty(), "needs at least one dataset");
  require(options.size >= 0, "size must not be negative, but is " + std::to_string(options.size));
  std::string first = to_string(parts_[0].dataset->schema());
  std::int64_t total = 0;
  for (const Part& part : parts_) {
    require(std::isfinite(part.weight) && part.weight > 0,
            "a weight must be positive, but is " + std::to_string(part.weight));
    require(part.dataset->size() > 0, "a dataset is empty");
    require(to_string(part.dataset->schema()) == first,
            "the datasets have different fields: " + first + " and " +
                to_string(part.dataset->schema()));
    total += part.dataset->size();
  }
  if (size_ == 0) size_ = total;
  double rest = 0;
  share_of_rest_.resize(parts_.size());
  for (std::size_t i = parts_.size(); i-- > 0;) {
    rest += parts_[i].weight;
    share_of_rest_[i] = parts_[i].weight / rest;
  }
  std::int64_t left = size_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    per_epoch_.push_back(i + 1 < parts_.size() ? taken(left, share_of_rest_[i]) : left);
    left -= per_epoch_.back();
  }
}

// Walks down the parts: each takes its share of what those before it left, and what remains is
// counted anew. The count at the part that takes it is the sample's rank within the part.
Mixture::Choice Mixture::choose(std::int64_t index, std::int64_t epoch) const {
  std::int64_t rank = index;
  std::size_t part = 0;
  for (; part + 1 < parts_.size(); ++part) {
    std::int64_t before = taken(rank, share_of_rest_[part]);
    if (taken(rank + 1, share_of_rest_[part]) > before) {
      rank = before;
      break;
    }
    rank -= before;
  }
  std::int64_t size = parts_[part].dataset->size();
  std::int64_t running = rank + epoch * per_epoch_[part];
  Permutation order(size, mix(seed_, part), running / size);
  return {static_cast<int>(part), order(running % size)};
}

Status Mixture::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  Choice choice = choose(index, context.epoch);
  LoadContext inner = context;
  inner.index = choice.index;
  const Dataset& dataset = *parts_[static_cast<std::size_t>(choice.part)].dataset;
  Status status = dataset.load(choice.index, inner, sample);
  if (!status.ok()) {
    // Another epoch has another sample here, so the failure is not the index's own.
    status.error().transient();
    if (status.error().source().empty()) status.error().at(dataset.describe(choice.index));
  }
  return status;
}

std::vector<LeftOut> Mixture::left_out() const {
  std::vector<LeftOut> all;
  for (const Part& part : parts_) {
    for (LeftOut& entry : part.dataset->left_out()) all.push_back(std::move(entry));
  }
  return all;
}

std::string Mixture::describe(std::int64_t index) const {
  return "mixture sample " + std::to_string(index);
}

std::int64_t Mixture::samples_per_task() const {
  std::int64_t fewest = parts_[0].dataset->samples_per_task();
  for (const Part& part : parts_) fewest = std::min(fewest, part.dataset->samples_per_task());
  return fewest;
}

}  // namespace millrace
