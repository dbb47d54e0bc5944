#include "storage_types.h"

#include <array>

namespace millrace {

namespace {

struct Type {
  c10::ScalarType type;
  std::string_view dtype;
  std::string_view storage;  // empty: untyped
};

using c10::ScalarType;
constexpr std::array types{
    Type{ScalarType::Double, "float64", "DoubleStorage"},
    Type{ScalarType::Float, "float32", "FloatStorage"},
    Type{ScalarType::Half, "float16", "HalfStorage"},
    Type{ScalarType::BFloat16, "bfloat16", "BFloat16Storage"},
    Type{ScalarType::Long, "int64", "LongStorage"},
    Type{ScalarType::Int, "int32", "IntStorage"},
    Type{ScalarType::Short, "int16", "ShortStorage"},
    Type{ScalarType::Char, "int8", "CharStorage"},
    Type{ScalarType::Byte, "uint8", "ByteStorage"},
    Type{ScalarType::Bool, "bool", "BoolStorage"},
    Type{ScalarType::ComplexDouble, "complex128", "ComplexDoubleStorage"},
    Type{ScalarType::ComplexFloat, "complex64", "ComplexFloatStorage"},
    Type{ScalarType::ComplexHalf, "complex32", ""},
    Type{ScalarType::UInt16, "uint16", ""},
    Type{ScalarType::UInt32, "uint32", ""},
    Type{ScalarType::UInt64, "uint64", ""},
    Type{ScalarType::Float8_e5m2, "float8_e5m2", ""},
    Type{ScalarType::Float8_e4m3fn, "float8_e4m3fn", ""},
    Type{ScalarType::Float8_e5m2fnuz, "float8_e5m2fnuz", ""},
    Type{ScalarType::Float8_e4m3fnuz, "float8_e4m3fnuz", ""},
    Type{ScalarType::Float8_e8m0fnu, "float8_e8m0fnu", ""},
    Type{ScalarType::Float4_e2m1fn_x2, "float4_e2m1fn_x2", ""},
};

}  // namespace

std::optional<std::string_view> storage_class(c10::ScalarType type) {
  for (const Type& known : types) {
    if (known.type == type && !known.storage.empty()) return known.storage;
  }
  return std::nullopt;
}

std::optional<c10::ScalarType> type_of_storage_class(std::string_view name) {
  for (const Type& known : types) {
    if (known.storage == name && !name.empty()) return known.type;
  }
  return std::nullopt;
}

std::optional<std::string_view> dtype_name(c10::ScalarType type) {
  for (const Type& known : types) {
    if (known.type == type) return known.dtype;
  }
  return std::nullopt;
}

std::optional<c10::ScalarType> type_of_dtype(std::string_view name) {
  for (const Type& known : types) {
    if (known.dtype == name) return known.type;
  }
  return std::nullopt;
}

}  // namespace millrace
