// Private: an Arrow file. The constructor validates the file; each record batch is validated when
// it is first read. See Note [an Arrow cache in one file]. It also reads Arrow's stream format,
// which Hugging Face datasets use.
#pragma once

#include "arrow_layout.h"

#include <millrace/datasets/listing/mapped_file.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace arrow::ipc {
class RecordBatchFileReader;
}  // namespace arrow::ipc

namespace millrace::detail {

class ArrowFile {
 public:
  // Throws an Error that names the file.
  explicit ArrowFile(const std::filesystem::path& path, Access access = Access::normal);
  ~ArrowFile();

  const std::filesystem::path& path() const { return file_.path(); }
  const MappedFile& file() const { return file_; }
  const arrow::Schema& schema() const { return *schema_; }
  // Nothing: not written by Millrace.
  const std::optional<CacheDescription>& description() const { return description_; }

  int batches() const;
  // The first row of each batch, and the total number of rows at the end.
  const std::vector<std::int64_t>& starts() const { return starts_; }
  bool compressed() const { return compressed_; }
  // A validated batch: none of its offsets point outside of it. Thread-safe.
  std::shared_ptr<arrow::RecordBatch> batch(int number) const;
  // The failures, one JSON object per line.
  std::string_view failures() const { return failures_; }
  std::span<const std::byte> data()
      const;  // the bytes of all record batches; only with a description

 private:
  bool read_seal();
  void read_reader();
  void read_stream();
  void read_description();
  void read_starts();
  std::shared_ptr<arrow::RecordBatch> read_batch(int number) const;

  MappedFile file_;
  std::optional<ArrowSeal> seal_;
  std::span<const std::byte> index_;  // BatchEntry each, not aligned
  std::string_view failures_;
  std::shared_ptr<arrow::Schema> schema_;
  std::optional<CacheDescription> description_;
  std::vector<std::int64_t> starts_;
  bool compressed_ = false;
  mutable std::mutex mutex_;  // Arrow's reader is not thread-safe
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  std::vector<std::shared_ptr<arrow::RecordBatch>>
      streamed_;  // batches of a stream, which has no reader
};

// Verifies every byte of a file that was just written. Throws if it does not match the description.
void check_written_arrow(const std::filesystem::path& file, const CacheDescription& description);

}  // namespace millrace::detail
