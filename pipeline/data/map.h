// A function over every sample of a data set. It runs inside the loader's tasks, in parallel, and
// what it throws counts as an error of that sample.
//
//   auto brighter = map(images, [](Sample& sample, const LoadContext&) {
//     for (auto& value : sample["image"].as<std::uint8_t>()) value |= 1;
//   });
//   auto means = map(images, Schema{{.name = "mean", .dtype = DType::float32, .shape = {}}},
//                    [](const Sample& in, Sample& out, const LoadContext&) { ... });
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

class Mapped : public Dataset {
 public:
  using InPlace = std::function<void(Sample&, const LoadContext&)>;
  using Between = std::function<void(const Sample&, Sample&, const LoadContext&)>;

  Mapped(AnyDataset dataset, InPlace function);
  Mapped(AnyDataset dataset, Schema schema, Between function);

  std::int64_t size() const override { return dataset_->size(); }
  const Schema& schema() const override;
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override { return dataset_->describe(index); }
  std::int64_t cost(std::int64_t index) const override { return dataset_->cost(index); }
  std::int64_t length(std::int64_t index) const override { return dataset_->length(index); }
  std::vector<LeftOut> left_out() const override { return dataset_->left_out(); }

 private:
  struct Shared;  // the function, and samples of the inner schema to reuse

  AnyDataset dataset_;
  std::shared_ptr<Shared> shared_;
};

// Changes samples in place; the schema stays.
inline Mapped map(AnyDataset dataset, Mapped::InPlace function) {
  return {std::move(dataset), std::move(function)};
}
// Makes samples of another schema.
inline Mapped map(AnyDataset dataset, Schema schema, Mapped::Between function) {
  return {std::move(dataset), std::move(schema), std::move(function)};
}

}  // namespace millrace
