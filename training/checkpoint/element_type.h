// The element types of tensors in checkpoints: those that PyTorch saves. A pickle names most of
// them by a storage class (torch.FloatStorage), the newer ones by an untyped storage and a dtype
// (torch.uint16).
//
//   std::size_t bytes = 10 * millrace::size_of(millrace::ElementType::bfloat16);  // 20
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace millrace {

enum class ElementType : std::uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean,
  complex128,
  complex64,
  complex32,
  uint16,
  uint32,
  uint64,
  float8_e5m2,
  float8_e4m3fn,
  float8_e5m2fnuz,
  float8_e4m3fnuz,
  float8_e8m0fnu,
  float4_e2m1fn_x2,
};

// Bytes of one element.
std::size_t size_of(ElementType type);
// The dtype's name in PyTorch: "float32" for torch.float32.
std::string_view name_of(ElementType type);
bool is_complex(ElementType type);

namespace detail {

std::optional<ElementType> type_of_dtype(std::string_view name);
// "FloatStorage"; nothing if the type is saved with an untyped storage.
std::optional<std::string_view> storage_class(ElementType type);
std::optional<ElementType> type_of_storage_class(std::string_view name);

}  // namespace detail

}  // namespace millrace
