// How a pickle names the types of elements: most as a storage class of the torch of old
// (torch.FloatStorage), the newer ones as an untyped storage and a dtype (torch.uint16).
#pragma once

#include <optional>
#include <string_view>

#include <c10/core/ScalarType.h>

namespace millrace {

// The class that stands for the type, or nothing if it goes with an untyped storage.
std::optional<std::string_view> storage_class(c10::ScalarType type);
// From "FloatStorage", nothing if there is no such class.
std::optional<c10::ScalarType> type_of_storage_class(std::string_view name);

// "float32" for torch.float32; nothing if there is no such type, or no way to save it.
std::optional<std::string_view> dtype_name(c10::ScalarType type);
std::optional<c10::ScalarType> type_of_dtype(std::string_view name);

}  // namespace millrace
