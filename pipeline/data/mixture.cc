#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/order/permutation.h>

#include <cmath>

namespace millrace {

namespace {

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error("mixture: " + problem).kind(ErrorKind::usage);
}

// The number of samples that a part with this share has among the first n.
std::int64_t taken(std::int64_t n, double share) {
  return static_cast<std::int64_t>(std::floor(static_cast<long double>(n) * share));
}

std::vector<AnyDataset> datasets_of(const std::vector<Mixture::Part>& parts) {
  require(!parts.empty(), "needs at least one dataset");
  std::vector<AnyDataset> datasets;
  for (const Mixture::Part& part : parts) datasets.push_back(part.dataset);
  return datasets;
}

}  // namespace

Mixture::Mixture(const std::vector<Part>& weighted, MixtureOptions options)
    : Adapter(datasets_of(weighted)), size_(options.size), seed_(options.seed) {
  require(options.size >= 0, "size must not be negative, but is " + std::to_string(options.size));
  std::string first = to_string(schema());
  std::int64_t total = 0;
  for (const Part& part : weighted) {
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
  share_of_rest_.resize(weighted.size());
  for (std::size_t i = weighted.size(); i-- > 0;) {
    rest += weighted[i].weight;
    share_of_rest_[i] = weighted[i].weight / rest;
  }
  std::int64_t left = size_;
  for (std::size_t i = 0; i < weighted.size(); ++i) {
    per_epoch_.push_back(i + 1 < weighted.size() ? taken(left, share_of_rest_[i]) : left);
    left -= per_epoch_.back();
  }
}

// Goes through the parts. Each takes its share of the samples that the parts before it did not
// take; `rank` is the sample's number among those. When a part takes the sample, `rank` is its
// number within the part.
Mixture::Choice Mixture::choose(std::int64_t index, std::int64_t epoch) const {
  std::int64_t rank = index;
  std::size_t part = 0;
  for (; part + 1 < share_of_rest_.size(); ++part) {
    std::int64_t before = taken(rank, share_of_rest_[part]);
    if (taken(rank + 1, share_of_rest_[part]) > before) {
      rank = before;
      break;
    }
    rank -= before;
  }
  const auto number = static_cast<int>(part);
  std::int64_t size = this->part(number).size();
  std::int64_t running = rank + epoch * per_epoch_[part];
  Permutation order(size, mix(seed_, part), running / size);
  return {number, order(running % size)};
}

Adapter::Target Mixture::target(std::int64_t index, std::int64_t epoch) const {
  const Choice choice = choose(index, epoch);
  return {.part = choice.part, .index = choice.index, .epoch = epoch};
}

Status Mixture::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  Status status = Adapter::load(index, context, sample);
  if (!status.ok()) {
    // Another epoch has another sample here, so a failure does not make the index bad.
    status.error().transient();
    if (status.error().source().empty()) {
      const Choice choice = choose(index, context.epoch);
      status.error().at(part(choice.part).describe(choice.index));
    }
  }
  return status;
}

std::string Mixture::describe(std::int64_t index) const {
  return "mixture sample " + std::to_string(index);
}

}  // namespace millrace
