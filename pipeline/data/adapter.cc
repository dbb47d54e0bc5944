#include <millrace/pipeline/data/adapter.h>

#include <algorithm>

namespace millrace {

Adapter::Adapter(std::vector<AnyDataset> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw Error("an adapter needs at least one dataset").kind(ErrorKind::usage);
}

Status Adapter::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  const Target to = target(index, context.epoch);
  LoadContext inside = context;
  inside.index = to.index;
  inside.epoch = to.epoch;
  return part(to.part).load(to.index, inside, sample);
}

std::string Adapter::describe(std::int64_t index) const {
  const Target to = target(index, 0);
  return part(to.part).describe(to.index);
}

std::vector<LeftOut> Adapter::left_out() const {
  std::vector<LeftOut> all;
  for (const AnyDataset& part : parts_) {
    for (LeftOut& entry : part->left_out()) all.push_back(std::move(entry));
  }
  return all;
}

std::int64_t Adapter::samples_per_task() const {
  std::int64_t fewest = inner().samples_per_task();
  for (const AnyDataset& part : parts_) fewest = std::min(fewest, part->samples_per_task());
  return fewest;
}

void Adapter::expect(std::int64_t index, std::int64_t epoch) const noexcept {
  const Target to = target(index, epoch);
  part(to.part).expect(to.index, to.epoch);
}

std::int64_t Adapter::cost(std::int64_t index, std::int64_t epoch) const {
  const Target to = target(index, epoch);
  return part(to.part).cost(to.index, to.epoch);
}

std::int64_t Adapter::length(std::int64_t index, std::int64_t epoch) const {
  const Target to = target(index, epoch);
  return part(to.part).length(to.index, to.epoch);
}

}  // namespace millrace
