// An Arrow IPC file as a data set: caches of Millrace, and files of pyarrow, polars and others. A
// column becomes a field: numbers, fixed-size lists and fixed-shape tensors have fixed shapes and
// are copied straight into the batch; lists, strings and binary vary and are views of the mapping.
// Every record batch is proven when it is first used. Compressed batches are kept unpacked, up to
// `unpacked_bytes`; random access unpacks a whole batch for one row, so train on plain files.
//
//   ArrowDataset clips("clips.arrow", {.columns = {"video", "caption"}});
//   Loader loader(clips, {.batch_size = 4, .shuffle = true});
#pragma once

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct ArrowOptions {
  // Which, in which order; empty: all, without those that tell of sources.
  std::vector<std::string> columns{};
  // A column of lists whose lengths are those of the samples (Dataset::length), e.g. "faces".
  std::string length_of{};
  Access access = Access::normal;
  std::int64_t unpacked_bytes = 256 << 20;  // of compressed files
};

class ArrowDataset : public Dataset {
 public:
  // Throws if the file is damaged, or if a column is of a type that has no field.
  explicit ArrowDataset(const std::filesystem::path& path, const ArrowOptions& options = {});

  std::int64_t size() const override;
  const Schema& schema() const override;
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  // The source that the row was made of, where the file tells.
  std::string describe(std::int64_t index) const override;
  // That source alone; empty: the file does not tell.
  std::string source(std::int64_t index) const;
  std::int64_t samples_per_task() const override;
  void expect(std::int64_t index) const noexcept override;
  std::int64_t length(std::int64_t index) const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace millrace
