// The base of data sets that wrap other data sets. It forwards every virtual of Dataset to the
// sample that `target` names, so an adapter writes down only what it changes and cannot forget the
// rest.
//
//   class Reversed : public Adapter {
//    public:
//     explicit Reversed(AnyDataset dataset) : Adapter(std::move(dataset)) {}
//
//    protected:
//     Target target(std::int64_t index, std::int64_t epoch) const override {
//       return {.index = inner().size() - 1 - index, .epoch = epoch};
//     }
//   };
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

class Adapter : public Dataset {
 public:
  // By default: the size and the schema of the first wrapped data set.
  std::int64_t size() const override { return inner().size(); }
  const Schema& schema() const override { return inner().schema(); }
  // Loads the target. The wrapped data set gets its own index in the context, so a sample makes the
  // same random choices with and without the adapter.
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  // The name that the target has in epoch 0.
  std::string describe(std::int64_t index) const override;
  // Those of all wrapped data sets, one data set after the other.
  std::vector<LeftOut> left_out() const override;
  // The smallest of all wrapped data sets.
  std::int64_t samples_per_task() const override;
  void expect(std::int64_t index, std::int64_t epoch = 0) const noexcept override;
  std::int64_t cost(std::int64_t index, std::int64_t epoch = 0) const override;
  std::int64_t length(std::int64_t index, std::int64_t epoch = 0) const override;

 protected:
  // A sample of a wrapped data set.
  struct Target {
    int part = 0;  // which data set
    std::int64_t index = 0;
    std::int64_t epoch = 0;
  };

  explicit Adapter(AnyDataset dataset) : parts_{std::move(dataset)} {}
  // Wraps a data set that is an adapter itself, where the copy constructor would copy its base.
  template <std::derived_from<Adapter> D>
  requires(!std::same_as<D, Adapter>) explicit Adapter(D dataset)
      : Adapter(AnyDataset(std::move(dataset))) {}
  // Throws an Error of kind usage if there is none.
  explicit Adapter(std::vector<AnyDataset> parts);

  // The index map: which sample an epoch has at an index. Called from many threads at once; must
  // not throw. By default the same index and epoch of the first data set.
  virtual Target target(std::int64_t index, std::int64_t epoch) const {
    return {.index = index, .epoch = epoch};
  }

  int parts() const { return static_cast<int>(parts_.size()); }
  const Dataset& part(int number) const { return *parts_[static_cast<std::size_t>(number)]; }
  // The wrapped data set, where there is only one.
  const Dataset& inner() const { return *parts_.front(); }

 private:
  std::vector<AnyDataset> parts_;
};

}  // namespace millrace
