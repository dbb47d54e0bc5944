// Private: one column of a checked record batch, and how its rows become fields of samples.
#pragma once

#include "arrow_columns.h"

#include <millrace/pipeline/data/sample.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace arrow {
class Array;
}

namespace millrace::detail {

// One column of a validated batch, resolved to addresses. Keeps the batch alive.
class ColumnView {
 public:
  ColumnView(const ColumnPlan& plan, const std::shared_ptr<arrow::RecordBatch>& batch);

  // Copies row `row` into field `number` of the sample, or makes the field a view of it.
  Status load(std::int64_t row, int number, Sample& sample) const;
  // Prefetches the row.
  void expect(std::int64_t row) const noexcept;
  // The address of row 0 if rows of `bytes` bytes are contiguous and can be copied unchanged; else
  // null.
  const std::byte* plain_rows(std::size_t& bytes) const;
  // The extent of a row along the first variable axis; 0: not a list.
  std::int64_t length(std::int64_t row) const;
  // For string and binary columns only.
  std::string_view text(std::int64_t row) const;

 private:
  enum class Kind { fixed, bits, ragged, ragged_bits, looked_up };

  void resolve_list(const std::shared_ptr<arrow::Array>& list);
  Shape shape_of(std::int64_t row, std::int64_t units) const;
  std::int64_t offset(std::int64_t row) const;

  Field field_;
  Kind kind_ = Kind::fixed;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::shared_ptr<arrow::Array> array_;  // the column
  bool has_nulls_ = false;
  const std::byte* values_ = nullptr;  // address of row 0, or of the first list element
  std::int64_t first_bit_ = 0;         // for booleans, which Arrow stores as bits
  std::size_t unit_bytes_ = 0;         // size of a row, or of a list element
  std::int64_t unit_elements_ = 1;     // the same as a number of array elements
  Buffer kept_;                        // for lists: all elements
  const std::int32_t* offsets32_ = nullptr;
  const std::int64_t* offsets64_ = nullptr;
  const std::int64_t* shapes_ = nullptr;  // `rank` values per row
};

}  // namespace millrace::detail
