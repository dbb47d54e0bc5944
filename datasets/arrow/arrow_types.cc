#include "arrow_types.h"

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <nlohmann/json.hpp>

namespace millrace::detail {

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

// True if a tensor's axes are stored in the order of its shape.
bool in_row_order(const nlohmann::json& tensor) {
  std::int64_t axis = 0;
  for (const auto& stored : tensor.value("permutation", nlohmann::json::array())) {
    if (stored != axis++) return false;
  }
  return true;
}

}  // namespace

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
      auto tensor = nlohmann::json::parse(extension.Serialize(), nullptr, false);
      if (tensor.is_discarded() || !in_row_order(tensor)) return std::nullopt;
      Shape shape;
      for (const auto& extent : tensor.at("shape")) shape.push_back(extent.get<std::int64_t>());
      if (shape.elements() != field->shape.elements()) return std::nullopt;
      field->shape = shape;
      return field;
    }
    default:
      return fixed_field(type);
  }
}

}  // namespace millrace::detail
