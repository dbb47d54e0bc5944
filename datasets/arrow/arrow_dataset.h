// An Arrow IPC file as a data set: caches of Millrace, and files from pyarrow, polars and others.
// Each column is a field. Numbers, fixed-size lists and fixed-shape tensors have a fixed shape and
// are copied straight into the batch; lists, strings and binary have a variable shape and are views
// of the mapped file. A record batch is validated when it is first used. Decompressed batches are
// kept, up to `unpacked_bytes`; reading one random row decompresses its whole batch, so train on
// uncompressed files.
//
//   ArrowDataset clips("clips.arrow", {.columns = {"video", "caption"}});
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
  // The columns to read, in this order; empty: all but source, source_bytes and source_time_ns.
  std::vector<std::string> columns{};
  // A list column whose lengths Dataset::length returns, e.g. "faces"; empty: none.
  std::string length_of{};
  Access access = Access::normal;
  std::int64_t unpacked_bytes = 256 << 20;  // memory for decompressed batches
};

class ArrowDataset : public Dataset {
 public:
  // Throws if the file is damaged, or if a column's type cannot be a field.
  explicit ArrowDataset(const std::filesystem::path& path, const ArrowOptions& options = {});

  std::int64_t size() const override;
  const Schema& schema() const override;
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  // File, row and, if the file records it, the source that the row was made from.
  std::string describe(std::int64_t index) const override;
  // That source alone; empty: not recorded.
  std::string source(std::int64_t index) const;
  std::int64_t samples_per_task() const override;
  void expect(std::int64_t index, std::int64_t epoch = 0) const noexcept override;
  std::int64_t length(std::int64_t index, std::int64_t epoch = 0) const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace millrace
