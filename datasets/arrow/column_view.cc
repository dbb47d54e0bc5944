#include "column_view.h"

#include "arrow_types.h"

#include <millrace/datasets/arrays/row_reading.h>
#include <millrace/pipeline/base/error.h>

#include <cstring>
#include <utility>

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/util/bit_util.h>

namespace millrace::detail {

namespace {

// The address of element `index` of an array without offsets.
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

// The array of the innermost elements, and the position of element `index` in it.
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

}  // namespace millrace::detail
