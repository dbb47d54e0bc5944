// Private: an Arrow file, proven at its opening; its batches are proven one by one, each when it is
// first asked for. See Note [an Arrow cache in one file]. Files in Arrow's stream format, as
// Hugging Face's datasets keep them, are read too.
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

namespace millrace {

class ArrowFile {
 public:
  // Throws an Error that names the file.
  explicit ArrowFile(const std::filesystem::path& path, Access access = Access::normal);
  ~ArrowFile();

  const std::filesystem::path& path() const { return file_.path(); }
  const MappedFile& file() const { return file_; }
  const arrow::Schema& schema() const { return *schema_; }
  // None: written by others.
  const std::optional<CacheDescription>& description() const { return description_; }

  int batches() const;
  // Where each batch begins, and the number of rows at the end.
  const std::vector<std::int64_t>& starts() const { return starts_; }
  bool compressed() const { return compressed_; }
  // Proven: nothing that is read from it lies outside of it. From any thread.
  std::shared_ptr<arrow::RecordBatch> batch(int number) const;
  // The failures, one JSON object a line.
  std::string_view failures() const { return failures_; }
  std::span<const std::byte> data() const;  // all record batches; only with a description

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
  mutable std::mutex mutex_;  // Arrow's reader is for one thread at a time
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  std::vector<std::shared_ptr<arrow::RecordBatch>> streamed_;  // instead of the reader
};

// Checks a file that was just written, down to the last byte. Throws if it is not as described.
void check_written_arrow(const std::filesystem::path& file, const CacheDescription& description);

}  // namespace millrace
