// Several data sets as one, drawn in proportion to their weights. The shares are exact over every
// stretch of samples, nothing is remembered, and over the epochs a data set whose share is smaller
// than itself gives other samples each time; one whose share is larger repeats in a new order.
//
//   Mixture mixed({{photos, 3.0}, {drawings, 1.0}}, {.size = 100'000});
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

struct MixtureOptions {
  std::int64_t size = 0;  // samples an epoch; 0: as many as all data sets have together
  std::uint64_t seed = 42;
};

class Mixture : public Dataset {
 public:
  struct Part {
    AnyDataset dataset;
    double weight = 1.0;
  };

  // Throws if the schemas differ, a part is empty or a weight is not positive.
  Mixture(std::vector<Part> parts, MixtureOptions options = {});

  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return parts_[0].dataset->schema(); }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::int64_t samples_per_task() const override;
  std::vector<LeftOut> left_out() const override;

  struct Choice {
    int part = 0;
    std::int64_t index = 0;  // within the part
  };
  Choice choose(std::int64_t index, std::int64_t epoch) const;

 private:
  std::vector<Part> parts_;
  std::vector<double> share_of_rest_;  // a part's weight over that of itself and those after it
  std::vector<std::int64_t> per_epoch_;
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace millrace
