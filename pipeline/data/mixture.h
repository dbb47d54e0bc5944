// Several data sets as one, mixed in proportion to their weights. Any run of consecutive samples
// has the proportions exactly, within one sample. Each epoch continues where the one before ended,
// so a data set that is larger than its share of an epoch gives other samples in the next; one that
// is smaller repeats its samples in a new order. The mixture has no state.
//
//   auto mix_pictures = [](AnyDataset photos, AnyDataset drawings) {
//     return Mixture({{photos, 3.0}, {drawings, 1.0}}, {.size = 100'000});
//   };
#pragma once

#include <millrace/pipeline/data/adapter.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct MixtureOptions {
  std::int64_t size = 0;  // samples per epoch; 0: the sum of the sizes of all data sets
  std::uint64_t seed = 42;
};

class Mixture : public Adapter {
 public:
  struct Part {
    AnyDataset dataset;
    double weight = 1.0;
  };

  // Throws if the schemas differ, a part is empty or a weight is not positive.
  Mixture(const std::vector<Part>& parts, MixtureOptions options = {});

  std::int64_t size() const override { return size_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  // "mixture sample 7", because the sample differs from epoch to epoch.
  std::string describe(std::int64_t index) const override;

  struct Choice {
    int part = 0;
    std::int64_t index = 0;  // within the part
  };
  // Which part the sample of an epoch comes from.
  Choice choose(std::int64_t index, std::int64_t epoch) const;

 protected:
  Target target(std::int64_t index, std::int64_t epoch) const override;

 private:
  std::vector<double> share_of_rest_;    // weight over the sum of weights from this part on
  std::vector<std::int64_t> per_epoch_;  // samples of each part
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace millrace
