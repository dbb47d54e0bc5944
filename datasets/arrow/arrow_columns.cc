#include "arrow_columns.h"

#include <millrace/datasets/arrays/row_reading.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/key_value_metadata.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

std::optional<DType> dtype_of_arrow(arrow::Type::type id) {
  switch (id) {
    case arrow::Type::BOOL:
      return DType::boolean;
    case arrow::Type::UINT8:
      return DType::uint8;
    case arrow::Type::INT8:
      return DType::int8;
    case arrow::Type::UINT16:
      return DType::uint16;
    case arrow::Type::INT16:
      return DType::int16;
    case arrow::Type::UINT32:
      return DType::uint32;
    case arrow::Type::INT32:
      return DType::int32;
    case arrow::Type::UINT64:
      return DType::uint64;
    case arrow::Type::INT64:
      return DType::int64;
    case arrow::Type::HALF_FLOAT:
      return DType::float16;
    case arrow::Type::FLOAT:
      return DType::float32;
    case arrow::Type::DOUBLE:
      return DType::float64;
    default:
      return std::nullopt;
  }
}

// A type whose values all have the same number of elements, or nothing.
std::optional<Field> fixed_field(const arrow::DataType& type) {
  if (auto dtype = dtype_of_arrow(type.id())) return Field{.name = {}, .dtype = *dtype};
  if (type.id() == arrow::Type::FIXED_SIZE_BINARY) {
    const auto& binary = static_cast<const arrow::FixedSizeBinaryType&>(type);
    return Field{.name = {}, .dtype = DType::uint8, .shape = {binary.byte_width()}};
  }
  if (type.id() != arrow::Type::FIXED_SIZE_LIST) return std::nullopt;
  const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
  auto inner = fixed_field(*list.value_type());
  if (!inner || inner->shape.rank() + 1 >= Shape::max_rank) return std::nullopt;
  inner->shape = inner->shape.with_front(list.list_size());
  return inner;
}

// Whether a tensor's axes are stored in the order in which they are told.
bool in_row_order(const nlohmann::json& tensor) {
  std::int64_t axis = 0;
  for (const auto& stored : tensor.value("permutation", nlohmann::json::array())) {
    if (stored != axis++) return false;
  }
  return true;
}

std::optional<Field> field_of_type(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return text_field("");
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
      return Field{.name = {}, .dtype = DType::uint8, .shape = {-1}};
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST: {
      auto inner = fixed_field(*static_cast<const arrow::BaseListType&>(type).value_type());
      if (!inner || inner->shape.rank() + 1 >= Shape::max_rank) return std::nullopt;
      inner->shape = inner->shape.with_front(-1);
      return inner;
    }
    case arrow::Type::DICTIONARY: {
      const auto& values = *static_cast<const arrow::DictionaryType&>(type).value_type();
      bool text = values.id() == arrow::Type::STRING || values.id() == arrow::Type::LARGE_STRING;
      return text ? std::optional(text_field("")) : std::nullopt;
    }
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      auto field = field_of_type(*extension.storage_type());
      if (!field || extension.extension_name() != "arrow.fixed_shape_tensor") return field;
      auto told = nlohmann::json::parse(extension.Serialize(), nullptr, false);
      if (told.is_discarded() || !in_row_order(told)) return std::nullopt;
      Shape shape;
      for (const auto& extent : told.at("shape")) shape.push_back(extent.get<std::int64_t>());
      if (shape.elements() != field->shape.elements()) return std::nullopt;
      field->shape = shape;
      return field;
    }
    default:
      return fixed_field(type);
  }
}

bool is_added(const std::string& name) {
  return name == source_column || name == source_bytes_column || name == source_time_column;
}

// The first byte of element `index` of an array without offsets.
const std::byte* element(const arrow::Array& array, std::int64_t index) {
  const arrow::ArrayData& data = *array.data();
  if (array.type_id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
    return element(*list.values(), (data.offset + index) * list.list_type()->list_size());
  }
  if (data.buffers.size() < 2 || data.buffers[1] == nullptr) return nullptr;
  return reinterpret_cast<const std::byte*>(data.buffers[1]->data()) +
         (data.offset + index) * array.type()->byte_width();
}

// The array that holds the elements themselves, and where element `index` begins in it.
std::pair<const arrow::Array*, std::int64_t> innermost(const arrow::Array& array,
                                                       std::int64_t index) {
  if (array.type_id() != arrow::Type::FIXED_SIZE_LIST) return {&array, array.offset() + index};
  const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
  return innermost(*list.values(), (array.offset() + index) * list.list_type()->list_size());
}

void refuse_inner_nulls(const arrow::Array& array, const std::string& name) {
  if (array.null_count() > 0) throw Error("column '" + name + "' has lists with nulls in them");
  if (array.type_id() == arrow::Type::FIXED_SIZE_LIST) {
    refuse_inner_nulls(*static_cast<const arrow::FixedSizeListArray&>(array).values(), name);
  }
}

void unpack(const std::uint8_t* bits, std::int64_t first, std::span<bool> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = arrow::bit_util::GetBit(bits, first + static_cast<std::int64_t>(i));
  }
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

ColumnView::ColumnView(const ColumnPlan& plan, const std::shared_ptr<arrow::RecordBatch>& batch)
    : field_(plan.field), batch_(batch), array_(batch->column(plan.column)) {
  has_nulls_ = array_->null_count() > 0;
  if (array_->type_id() == arrow::Type::EXTENSION) {
    array_ = static_cast<const arrow::ExtensionArray&>(*array_).storage();
  }
  if (plan.shape_column >= 0) {
    shapes_ = reinterpret_cast<const std::int64_t*>(element(*batch->column(plan.shape_column), 0));
  }
  switch (array_->type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
      resolve_list(array_);
      return;
    case arrow::Type::DICTIONARY:
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      kind_ = Kind::looked_up;
      return;
    default:
      break;
  }
  if (array_->type_id() == arrow::Type::FIXED_SIZE_LIST) {
    refuse_inner_nulls(*static_cast<const arrow::FixedSizeListArray&>(*array_).values(),
                       field_.name);
  }
  unit_elements_ = field_.shape.elements();
  unit_bytes_ = static_cast<std::size_t>(unit_elements_) * item_size(field_.dtype);
  auto [inner, first] = innermost(*array_, 0);
  if (inner->type_id() == arrow::Type::BOOL) {
    kind_ = Kind::bits;
    first_bit_ = first;
    const auto& bits = inner->data()->buffers[1];
    values_ = bits ? reinterpret_cast<const std::byte*>(bits->data()) : nullptr;
  } else {
    values_ = element(*array_, 0);
  }
}

void ColumnView::resolve_list(const std::shared_ptr<arrow::Array>& list) {
  kind_ = Kind::ragged;
  arrow::Type::type id = list->type_id();
  bool large = id == arrow::Type::LARGE_LIST || id == arrow::Type::LARGE_STRING ||
               id == arrow::Type::LARGE_BINARY;
  const auto& offsets = list->data()->buffers[1];
  const void* first = offsets && offsets->size() > 0 ? offsets->data() : nullptr;
  if (first != nullptr && large) {
    offsets64_ = static_cast<const std::int64_t*>(first) + list->offset();
  } else if (first != nullptr) {
    offsets32_ = static_cast<const std::int32_t*>(first) + list->offset();
  }
  std::int64_t units = list->length() > 0 ? offset(list->length()) : 0;
  if (id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST) {
    std::shared_ptr<arrow::Array> values =
        large ? static_cast<const arrow::LargeListArray&>(*list).values()
              : static_cast<const arrow::ListArray&>(*list).values();
    refuse_inner_nulls(*values, field_.name);
    unit_elements_ = 1;
    if (auto fixed = fixed_field(*values->type())) unit_elements_ = fixed->shape.elements();
    auto [inner, bit] = innermost(*values, 0);
    if (inner->type_id() == arrow::Type::BOOL) {
      kind_ = Kind::ragged_bits;
      first_bit_ = bit;
      const auto& bits = inner->data()->buffers[1];
      values_ = bits ? reinterpret_cast<const std::byte*>(bits->data()) : nullptr;
      return;
    }
    values_ = element(*values, 0);
  } else {
    const auto& bytes = list->data()->buffers[2];
    values_ = bytes ? reinterpret_cast<const std::byte*>(bytes->data()) : nullptr;
  }
  unit_bytes_ = static_cast<std::size_t>(unit_elements_) * item_size(field_.dtype);
  auto bytes = static_cast<std::size_t>(units) * unit_bytes_;
  static std::byte nothing[8];
  void* data = values_ != nullptr ? const_cast<std::byte*>(values_) : nothing;
  kept_ = Buffer::adopt(data, values_ != nullptr ? bytes : 0, Memory::mapped, [kept = list] {});
}

std::int64_t ColumnView::offset(std::int64_t row) const {
  if (offsets64_ != nullptr) return offsets64_[row];
  return offsets32_ != nullptr ? offsets32_[row] : 0;
}

Shape ColumnView::shape_of(std::int64_t row, std::int64_t units) const {
  std::int64_t elements = units * unit_elements_;
  int rank = field_.shape.rank();
  Shape shape;
  if (shapes_ != nullptr) {
    shape = Shape(std::span(shapes_ + row * rank, static_cast<std::size_t>(rank)));
  } else {
    std::int64_t others = 1;
    for (std::int64_t extent : field_.shape) others *= extent >= 0 ? extent : 1;
    for (std::int64_t extent : field_.shape) {
      shape.push_back(extent >= 0 ? extent : others > 0 ? elements / others : 0);
    }
  }
  if (!shape.is_fixed() || !field_.shape.admits(shape) || shape.elements() != elements) {
    throw Error("column '" + field_.name + "', row " + std::to_string(row) + ": " +
                std::to_string(elements) + " elements do not make " + to_string(field_.shape));
  }
  return shape;
}

Status ColumnView::load(std::int64_t row, int number, Sample& sample) const {
  if (has_nulls_ && array_->IsNull(row)) {
    return Error("column '" + field_.name + "' has no value in this row");
  }
  switch (kind_) {
    case Kind::fixed: {
      std::byte* to = sample.out(number).data();
      if (unit_bytes_ == 0) break;
      const std::byte* from = values_ + static_cast<std::size_t>(row) * unit_bytes_;
      if (field_.dtype == DType::boolean) {
        for (std::size_t i = 0; i < unit_bytes_; ++i) to[i] = std::byte{from[i] != std::byte{0}};
      } else {
        std::memcpy(to, from, unit_bytes_);
      }
      break;
    }
    case Kind::bits:
      unpack(reinterpret_cast<const std::uint8_t*>(values_), first_bit_ + row * unit_elements_,
             sample.out(number).as<bool>());
      break;
    case Kind::ragged: {
      std::int64_t begin = offset(row);
      Shape shape = shape_of(row, offset(row + 1) - begin);
      Array view(field_.dtype, shape, kept_, static_cast<std::size_t>(begin) * unit_bytes_);
      if (field_.dtype == DType::boolean) {
        const Array& to = sample.resize(number, shape);
        for (std::size_t i = 0; i < to.bytes(); ++i) {
          to.data()[i] = std::byte{view.data()[i] != std::byte{0}};
        }
      } else {
        sample.set(number, view);
      }
      break;
    }
    case Kind::ragged_bits: {
      std::int64_t begin = offset(row);
      Shape shape = shape_of(row, offset(row + 1) - begin);
      unpack(reinterpret_cast<const std::uint8_t*>(values_), first_bit_ + begin * unit_elements_,
             sample.resize(number, shape).as<bool>());
      break;
    }
    case Kind::looked_up: {
      std::string_view found = text(row);
      if (field_.text) {
        sample.set_text(field_.name, found);
      } else {
        const Array& to = sample.resize(number, {std::ssize(found)});
        if (!found.empty()) std::memcpy(to.data(), found.data(), found.size());
      }
      break;
    }
  }
  return {};
}

void ColumnView::expect(std::int64_t row) const noexcept {
  if (kind_ != Kind::fixed) return;
  fetch_ahead(values_ + static_cast<std::size_t>(row) * unit_bytes_, unit_bytes_);
}

std::int64_t ColumnView::length(std::int64_t row) const {
  if (offsets32_ == nullptr && offsets64_ == nullptr) return 0;
  const Shape shape = shape_of(row, offset(row + 1) - offset(row));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (field_.shape[axis] < 0) return shape[axis];
  }
  return 0;
}

const std::byte* ColumnView::plain_rows(std::size_t& bytes) const {
  bytes = unit_bytes_;
  bool plain = kind_ == Kind::fixed && !has_nulls_ && field_.dtype != DType::boolean;
  return plain && unit_bytes_ > 0 ? values_ : nullptr;
}

std::string_view ColumnView::text(std::int64_t row) const {
  if (kind_ == Kind::looked_up && array_->type_id() != arrow::Type::DICTIONARY) {
    return static_cast<const arrow::BinaryViewArray&>(*array_).GetView(row);
  }
  if (kind_ == Kind::looked_up) {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(*array_);
    std::int64_t code = coded.GetValueIndex(row);
    const arrow::Array& values = *coded.dictionary();
    if (values.type_id() == arrow::Type::LARGE_STRING) {
      return static_cast<const arrow::LargeStringArray&>(values).GetView(code);
    }
    return static_cast<const arrow::StringArray&>(values).GetView(code);
  }
  std::int64_t begin = offset(row);
  return {reinterpret_cast<const char*>(values_) + begin,
          static_cast<std::size_t>(offset(row + 1) - begin)};
}

}  // namespace millrace
