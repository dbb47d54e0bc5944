#include "arrow_columns.h"

#include "arrow_types.h"

#include <millrace/pipeline/base/error.h>

#include <utility>

#include <arrow/api.h>

namespace millrace::detail {

namespace {

bool is_added(const std::string& name) {
  return name == source_column || name == source_bytes_column || name == source_time_column;
}

}  // namespace

std::vector<ColumnPlan> plan_columns(const ArrowFile& file, const std::vector<std::string>& names) {
  std::vector<ColumnPlan> plans;
  const arrow::Schema& schema = file.schema();
  auto plan = [&](const std::string& name) {
    int column = schema.GetFieldIndex(name);
    if (column < 0) {
      throw Error("there is no column '" + name + "', or there are several")
          .at(file.path().string())
          .kind(ErrorKind::usage)
          .hint("The columns are: " + schema.ToString());
    }
    ColumnPlan result{.field = {}, .column = column};
    int described = file.description() ? file.description()->info.schema.find(name) : -1;
    if (described >= 0) {
      result.field = file.description()->info.schema[described];
      if (needs_shape_column(result.field)) {
        result.shape_column = schema.GetFieldIndex(name + std::string(shape_suffix));
      }
    } else {
      auto field = field_of_type(*schema.field(column)->type());
      if (!field) {
        throw Error("column '" + name + "' is " + schema.field(column)->type()->ToString() +
                    ", which cannot be a field of a sample")
            .at(file.path().string())
            .kind(ErrorKind::usage)
            .hint("Name the columns to read (ArrowOptions::columns)");
      }
      result.field = *field;
      result.field.name = name;
    }
    plans.push_back(std::move(result));
  };
  if (!names.empty()) {
    for (const std::string& name : names) plan(name);
  } else if (file.description()) {
    for (const Field& field : file.description()->info.schema) plan(field.name);
  } else {
    for (const auto& field : schema.fields()) {
      if (!is_added(field->name()) || schema.num_fields() == 1) plan(field->name());
    }
  }
  return plans;
}

Schema schema_of(const std::vector<ColumnPlan>& plans) {
  std::vector<Field> fields;
  fields.reserve(plans.size());
  for (const ColumnPlan& plan : plans) fields.push_back(plan.field);
  return Schema(std::move(fields));
}

std::vector<std::string> readable_columns(const ArrowFile& file,
                                          std::map<std::string, std::string>& others) {
  std::vector<std::string> names;
  for (const auto& field : file.schema().fields()) {
    if (is_added(field->name()) && file.schema().num_fields() > 1) continue;
    if (field_of_type(*field->type())) {
      names.push_back(field->name());
    } else {
      others[field->name()] = field->type()->ToString();
    }
  }
  return names;
}

}  // namespace millrace::detail
