// Private: 64-bit XXH3, the checksum of all shards, headers, footers and descriptions of caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace millrace::detail {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t checksum_of(std::span<const std::byte> bytes);
inline std::uint64_t checksum_of(std::string_view text) {
  return checksum_of(std::as_bytes(std::span(text)));
}
// 16 hexadecimal digits.
std::string to_hex(std::uint64_t value);

}  // namespace millrace::detail
