// A part of a data set, and the split into training and validation parts. With the same seed the
// split has the very indices that torch's random_split gives.
//
//   auto [train, valid] = random_split(clips, {.valid_fraction = 0.05, .seed = 42});
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

class Subset : public Dataset {
 public:
  Subset(AnyDataset dataset, std::vector<std::int64_t> indices);

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_->size()); }
  const Schema& schema() const override { return dataset_->schema(); }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::int64_t samples_per_task() const override { return dataset_->samples_per_task(); }
  std::vector<LeftOut> left_out() const override { return dataset_->left_out(); }
  void expect(std::int64_t index) const noexcept override {
    dataset_->expect((*indices_)[static_cast<std::size_t>(index)]);
  }
  std::int64_t cost(std::int64_t index) const override {
    return dataset_->cost((*indices_)[static_cast<std::size_t>(index)]);
  }
  std::int64_t length(std::int64_t index) const override {
    return dataset_->length((*indices_)[static_cast<std::size_t>(index)]);
  }

  const std::vector<std::int64_t>& indices() const { return *indices_; }

 private:
  AnyDataset dataset_;
  std::shared_ptr<const std::vector<std::int64_t>> indices_;  // shared: copies are cheap
};

struct SplitOptions {
  double valid_fraction = 0.05;
  std::uint64_t seed = 42;
};

struct Split {
  Subset train, valid;
};

// The training part has int((1 - valid_fraction) * size) samples, as the trainers in Python have
// it. Throws if either part would be empty.
Split random_split(AnyDataset dataset, SplitOptions options = {});

// Parts of the given lengths, which must add up to the data set's size; a part may be empty.
std::vector<Subset> random_parts(AnyDataset dataset, const std::vector<std::int64_t>& lengths,
                                 std::uint64_t seed = 42);

}  // namespace millrace
