// Private: reads numbers from unaligned bytes, little-endian or big-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::detail {

static_assert(std::endian::native == std::endian::little, "only little-endian machines are served");

template <typename T>
T load_little(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename T>
T load_big(const char* bytes) {
  char turned[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) turned[i] = bytes[sizeof(T) - 1 - i];
  return load_little<T>(turned);
}

}  // namespace millrace::detail
