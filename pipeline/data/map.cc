#include <millrace/pipeline/data/map.h>

#include <mutex>
#include <vector>

namespace millrace {

struct Mapped::Shared {
  InPlace in_place;
  Between between;
  Schema schema;
  // Samples of the wrapped data set that no load() uses now; at most one per thread.
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
    : Adapter(std::move(dataset)), shared_(std::make_shared<Shared>()) {
  shared_->in_place = std::move(function);
}

Mapped::Mapped(AnyDataset dataset, Schema schema, Between function)
    : Adapter(std::move(dataset)), shared_(std::make_shared<Shared>()) {
  shared_->between = std::move(function);
  shared_->schema = std::move(schema);
}

const Schema& Mapped::schema() const {
  return shared_->between ? shared_->schema : inner().schema();
}

Status Mapped::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  if (shared_->in_place) {
    Status status = inner().load(index, context, sample);
    if (status.ok()) shared_->in_place(sample, context);
    return status;
  }
  auto from = shared_->take(inner().schema());
  from->restart();
  Status status = inner().load(index, context, *from);
  if (status.ok()) shared_->between(*from, sample, context);
  shared_->give_back(std::move(from));
  return status;
}

}  // namespace millrace
