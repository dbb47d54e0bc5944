#include <millrace/pipeline/data/map.h>

#include <mutex>
#include <vector>

namespace millrace {

struct Mapped::Shared {
  InPlace in_place;
  Between between;
  Schema schema;
  // Inner samples that no load uses just now. There are never more than there are threads.
  std::mutex mutex;
  std::vector<std::unique_ptr<Sample>> idle;

  std::unique_ptr<Sample> take(const Schema& inner) {
    std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Sample>(inner);
    auto sample = std::move(idle.back());
    idle.pop_back();
    return sample;
  }
  void give_back(std::unique_ptr<Sample> sample) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(sample));
  }
};

Mapped::Mapped(AnyDataset dataset, InPlace function)
    : dataset_(std::move(dataset)), shared_(std::make_shared<Shared>()) {
  shared_->in_place = std::move(function);
}

Mapped::Mapped(AnyDataset dataset, Schema schema, Between function)
    : dataset_(std::move(dataset)), shared_(std::make_shared<Shared>()) {
  shared_->between = std::move(function);
  shared_->schema = std::move(schema);
}

const Schema& Mapped::schema() const {
  return shared_->between ? shared_->schema : dataset_->schema();
}

Status Mapped::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  if (shared_->in_place) {
    Status status = dataset_->load(index, context, sample);
    if (status.ok()) shared_->in_place(sample, context);
    return status;
  }
  auto inner = shared_->take(dataset_->schema());
  inner->restart();
  Status status = dataset_->load(index, context, *inner);
  if (status.ok()) shared_->between(*inner, sample, context);
  shared_->give_back(std::move(inner));
  return status;
}

}  // namespace millrace
