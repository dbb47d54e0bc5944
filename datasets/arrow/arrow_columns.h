// Private: columns of an Arrow batch as fields of samples.
#pragma once

#include "arrow_file.h"

#include <millrace/pipeline/data/sample.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace arrow {
class Array;
}

namespace millrace {

// Which column a field comes from.
struct ColumnPlan {
  Field field;
  int column = 0;
  int shape_column = -1;  // where the shape cannot be told from the length
};

// `names`: which columns, in which order; empty: all but those that a cache adds. Throws an Error
// that names the column and its type if it cannot be a field.
std::vector<ColumnPlan> plan_columns(const ArrowFile& file, const std::vector<std::string>& names);
// The names of all that can be fields; of the others, the types by name.
std::vector<std::string> readable_columns(const ArrowFile& file,
                                          std::map<std::string, std::string>& others);

// One column of one proven batch, down to its addresses. It keeps the batch.
class ColumnView {
 public:
  ColumnView(const ColumnPlan& plan, const std::shared_ptr<arrow::RecordBatch>& batch);

  // Row `row` into field `number` of the sample.
  Status load(std::int64_t row, int number, Sample& sample) const;
  // The row will be loaded soon.
  void expect(std::int64_t row) const noexcept;
  // Where rows of `bytes` stand one after the other, to be copied as they are; else null.
  const std::byte* plain_rows(std::size_t& bytes) const;
  // The extent of a row along the first axis that varies; 0: it is no list.
  std::int64_t length(std::int64_t row) const;
  // A string or binary column only.
  std::string_view text(std::int64_t row) const;

 private:
  enum class Kind { fixed, bits, ragged, ragged_bits, looked_up };

  void resolve_list(const std::shared_ptr<arrow::Array>& list);
  Shape shape_of(std::int64_t row, std::int64_t units) const;
  std::int64_t offset(std::int64_t row) const;

  Field field_;
  Kind kind_ = Kind::fixed;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::shared_ptr<arrow::Array> array_;  // the whole column
  bool has_nulls_ = false;
  const std::byte* values_ = nullptr;  // of row 0, or of the first list element
  std::int64_t first_bit_ = 0;         // of packed booleans
  std::size_t unit_bytes_ = 0;         // a row, or an element of a list
  std::int64_t unit_elements_ = 1;     // the same in elements
  Buffer kept_;                        // of lists: all elements
  const std::int32_t* offsets32_ = nullptr;
  const std::int64_t* offsets64_ = nullptr;
  const std::int64_t* shapes_ = nullptr;  // rank each
};

}  // namespace millrace
