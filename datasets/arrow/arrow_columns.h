// Private: which columns of an Arrow file become which fields of a sample.
#pragma once

#include "arrow_file.h"

#include <millrace/pipeline/data/schema.h>

#include <map>
#include <string>
#include <vector>

namespace millrace::detail {

// The column of a field.
struct ColumnPlan {
  Field field;
  int column = 0;
  int shape_column = -1;  // -1: the shape follows from the length
};

// `names`: the columns to read, in this order; empty: all but the source columns of a cache. Throws
// an Error that names the column and its type if it cannot be a field.
std::vector<ColumnPlan> plan_columns(const ArrowFile& file, const std::vector<std::string>& names);
// The fields of the plans, in their order.
Schema schema_of(const std::vector<ColumnPlan>& plans);
// The names of all columns that can be fields. `others` gets the types of all other columns.
std::vector<std::string> readable_columns(const ArrowFile& file,
                                          std::map<std::string, std::string>& others);

}  // namespace millrace::detail
