#include "arrow_cache.h"

#include "arrow_columns.h"
#include "arrow_file.h"

#include <memory>
#include <string>
#include <string_view>

#include <arrow/api.h>

namespace millrace::detail {

CacheInfo read_arrow_info(const std::filesystem::path& path) {
  ArrowFile file(path);
  if (file.description()) return file.description()->info;
  CacheInfo info;
  info.format = CacheFormat::arrow;
  auto readable = readable_columns(file, info.unreadable);
  if (!readable.empty()) info.schema = schema_of(plan_columns(file, readable));
  info.rows = file.starts().back();
  return info;
}

void for_each_arrow_source(const std::filesystem::path& path,
                           const std::function<void(std::int64_t row, const CacheSource&)>& use) {
  ArrowFile file(path);
  if (!file.description()) return;
  std::int64_t row = 0;
  auto column = [&](const arrow::RecordBatch& batch, std::string_view name) {
    return batch.GetColumnByName(std::string(name));
  };
  for (int i = 0; i < file.batches(); ++i) {
    auto batch = file.batch(i);
    auto names = std::static_pointer_cast<arrow::StringArray>(column(*batch, source_column));
    auto bytes = std::static_pointer_cast<arrow::Int64Array>(column(*batch, source_bytes_column));
    auto times = std::static_pointer_cast<arrow::Int64Array>(column(*batch, source_time_column));
    for (std::int64_t r = 0; r < batch->num_rows(); ++r) {
      use(row++, {names->GetString(r), bytes->Value(r), times->Value(r)});
    }
  }
}

}  // namespace millrace::detail
