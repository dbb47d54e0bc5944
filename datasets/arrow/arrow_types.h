// Private: the types of Arrow columns as fields of samples.
#pragma once

#include <millrace/pipeline/data/schema.h>

#include <optional>

namespace arrow {
class DataType;
}

namespace millrace::detail {

// The field of a column with this type, without a name; nothing if a sample cannot have
// this field.
std::optional<Field> field_of_type(const arrow::DataType& type);
// The same for types whose values all have the same number of elements; nothing for other types.
std::optional<Field> fixed_field(const arrow::DataType& type);

}  // namespace millrace::detail
