// Some samples of a data set, and the random split into training and validation samples. With the
// same seed the split has the same indices as torch's random_split.
//
//   auto split = [](AnyDataset clips) {
//     auto [train, valid] = random_split(clips, {.valid_fraction = 0.05, .seed = 42});
//     return train.size() - valid.size();
//   };
#pragma once

#include <millrace/pipeline/data/adapter.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace {

class Subset : public Adapter {
 public:
  Subset(AnyDataset dataset, std::vector<std::int64_t> indices);

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_->size()); }
  const std::vector<std::int64_t>& indices() const { return *indices_; }

 protected:
  Target target(std::int64_t index, std::int64_t epoch) const override {
    return {.index = (*indices_)[static_cast<std::size_t>(index)], .epoch = epoch};
  }

 private:
  std::shared_ptr<const std::vector<std::int64_t>> indices_;  // shared: copies are cheap
};

struct SplitOptions {
  double valid_fraction = 0.05;
  std::uint64_t seed = 42;
};

struct Split {
  Subset train, valid;
};

// The training part has int((1 - valid_fraction) * size) samples, as in the Python packages. Throws
// if either part would be empty.
Split random_split(AnyDataset dataset, SplitOptions options = {});

// Random parts with the given numbers of samples, which must add up to the data set's size; a part
// may be empty.
std::vector<Subset> random_parts(AnyDataset dataset, const std::vector<std::int64_t>& lengths,
                                 std::uint64_t seed = 42);

}  // namespace millrace
