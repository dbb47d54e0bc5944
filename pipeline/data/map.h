// Applies a function to every sample of a data set. The loader's tasks call it, from many threads
// at once. If it throws, that sample fails.
//
//   auto brighten = [](AnyDataset images) {
//     return map(std::move(images), [](Sample& sample, const LoadContext&) {
//       for (auto& value : sample["image"].as<std::uint8_t>()) value |= 1;
//     });
//   };
//   auto first_pixels = [](AnyDataset images) {
//     return map(std::move(images), Schema{{.name = "first", .dtype = DType::uint8, .shape = {}}},
//                [](const Sample& in, Sample& out, const LoadContext&) {
//                  out.out("first").as<std::uint8_t>()[0] = in["image"].as<std::uint8_t>()[0];
//                });
//   };
#pragma once

#include <millrace/pipeline/data/adapter.h>

#include <functional>
#include <memory>
#include <utility>

namespace millrace {

class Mapped : public Adapter {
 public:
  using InPlace = std::function<void(Sample&, const LoadContext&)>;
  using Between = std::function<void(const Sample&, Sample&, const LoadContext&)>;

  Mapped(AnyDataset dataset, InPlace function);
  Mapped(AnyDataset dataset, Schema schema, Between function);

  const Schema& schema() const override;
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;

 private:
  struct Shared;  // the function, and samples of the inner schema to reuse

  std::shared_ptr<Shared> shared_;
};

// Changes samples in place; the schema stays the same.
inline Mapped map(AnyDataset dataset, Mapped::InPlace function) {
  return {std::move(dataset), std::move(function)};
}
// Makes samples of another schema from those of the data set.
inline Mapped map(AnyDataset dataset, Schema schema, Mapped::Between function) {
  return {std::move(dataset), std::move(schema), std::move(function)};
}

}  // namespace millrace
