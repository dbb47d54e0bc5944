// Synthetic images: a gradient with random noise, and the index as a label. For trying a loader or
// a device without files, and for measuring the overhead of the loader.
//
//   GeneratedImages images({.count = 10'000, .shape = {128, 128, 3}});
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <string>

namespace millrace {

struct GeneratedOptions {
  std::int64_t count = 1000;
  Shape shape{128, 128, 3};  // of "image", uint8
  std::int64_t work_us = 0;  // processor time to spend on each sample, like a decoder
  double bad_fraction = 0;   // fraction of samples that fail to load
};

// Fields: image uint8 `shape`, label int64 [].
class GeneratedImages : public Dataset {
 public:
  explicit GeneratedImages(GeneratedOptions options = {});

  std::int64_t size() const override { return options_.count; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;

 private:
  GeneratedOptions options_;
  Schema schema_;
};

}  // namespace millrace
