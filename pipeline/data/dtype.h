// Element types, with the names of numpy and Arrow.
//
//   std::size_t size = 100 * item_size(DType::float32);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace millrace {

enum class DType : std::uint8_t {
  boolean,
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  uint64,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
};

constexpr std::size_t item_size(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
    case DType::int8:
      return 1;
    case DType::uint16:
    case DType::int16:
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::uint32:
    case DType::int32:
    case DType::float32:
      return 4;
    default:
      return 8;
  }
}

constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"bool",     "uint8",   "int8",   "uint16", "int16",
                                        "uint32",   "int32",   "uint64", "int64",  "float16",
                                        "bfloat16", "float32", "float64"};
  return names[static_cast<std::size_t>(dtype)];
}

// dtype_of<float> == DType::float32. The 16-bit floats have no C++20 type and are read as uint16.
template <typename T>
constexpr DType dtype_of = [] {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return DType::boolean;
  } else if constexpr (std::is_floating_point_v<U>) {
    static_assert(sizeof(U) == 4 || sizeof(U) == 8);
    return sizeof(U) == 4 ? DType::float32 : DType::float64;
  } else {
    static_assert(std::is_integral_v<U> || std::is_same_v<U, std::byte>);
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? DType::int8 : DType::uint8;
    if constexpr (sizeof(U) == 2) return is_signed ? DType::int16 : DType::uint16;
    if constexpr (sizeof(U) == 4) return is_signed ? DType::int32 : DType::uint32;
    if constexpr (sizeof(U) == 8) return is_signed ? DType::int64 : DType::uint64;
  }
}();

}  // namespace millrace
