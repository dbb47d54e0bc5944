#include <millrace/training/checkpoint/element_type.h>

#include <array>

namespace millrace {

namespace {

struct TypeRow {
  ElementType type;
  std::size_t bytes;
  std::string_view dtype;
  std::string_view storage;  // empty: untyped
};

// In the order of the enumeration.
constexpr std::array type_rows{
    TypeRow{ElementType::float64, 8, "float64", "DoubleStorage"},
    TypeRow{ElementType::float32, 4, "float32", "FloatStorage"},
    TypeRow{ElementType::float16, 2, "float16", "HalfStorage"},
    TypeRow{ElementType::bfloat16, 2, "bfloat16", "BFloat16Storage"},
    TypeRow{ElementType::int64, 8, "int64", "LongStorage"},
    TypeRow{ElementType::int32, 4, "int32", "IntStorage"},
    TypeRow{ElementType::int16, 2, "int16", "ShortStorage"},
    TypeRow{ElementType::int8, 1, "int8", "CharStorage"},
    TypeRow{ElementType::uint8, 1, "uint8", "ByteStorage"},
    TypeRow{ElementType::boolean, 1, "bool", "BoolStorage"},
    TypeRow{ElementType::complex128, 16, "complex128", "ComplexDoubleStorage"},
    TypeRow{ElementType::complex64, 8, "complex64", "ComplexFloatStorage"},
    TypeRow{ElementType::complex32, 4, "complex32", ""},
    TypeRow{ElementType::uint16, 2, "uint16", ""},
    TypeRow{ElementType::uint32, 4, "uint32", ""},
    TypeRow{ElementType::uint64, 8, "uint64", ""},
    TypeRow{ElementType::float8_e5m2, 1, "float8_e5m2", ""},
    TypeRow{ElementType::float8_e4m3fn, 1, "float8_e4m3fn", ""},
    TypeRow{ElementType::float8_e5m2fnuz, 1, "float8_e5m2fnuz", ""},
    TypeRow{ElementType::float8_e4m3fnuz, 1, "float8_e4m3fnuz", ""},
    TypeRow{ElementType::float8_e8m0fnu, 1, "float8_e8m0fnu", ""},
    TypeRow{ElementType::float4_e2m1fn_x2, 1, "float4_e2m1fn_x2", ""},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < type_rows.size(); ++i) {
    if (static_cast<std::size_t>(type_rows[i].type) != i) return false;
  }
  return true;
}
static_assert(in_order());

const TypeRow& row_of(ElementType type) {
  return type_rows[static_cast<std::size_t>(type)];
}

}  // namespace

std::size_t size_of(ElementType type) {
  return row_of(type).bytes;
}

std::string_view name_of(ElementType type) {
  return row_of(type).dtype;
}

bool is_complex(ElementType type) {
  return name_of(type).starts_with("complex");
}

namespace detail {

std::optional<ElementType> type_of_dtype(std::string_view name) {
  for (const TypeRow& row : type_rows) {
    if (row.dtype == name) return row.type;
  }
  return std::nullopt;
}

std::optional<std::string_view> storage_class(ElementType type) {
  if (row_of(type).storage.empty()) return std::nullopt;
  return row_of(type).storage;
}

std::optional<ElementType> type_of_storage_class(std::string_view name) {
  for (const TypeRow& row : type_rows) {
    if (row.storage == name && !name.empty()) return row.type;
  }
  return std::nullopt;
}

}  // namespace detail

}  // namespace millrace
