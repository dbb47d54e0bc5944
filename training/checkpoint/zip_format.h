// Signatures and sizes of the zip format (PKWARE's APPNOTE, 4.3), for its reader and its writer.
#pragma once

#include <cstdint>

namespace millrace::detail::zip {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t descriptor_signature = 0x08074b50;
constexpr std::uint32_t entry_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22;
constexpr std::uint64_t end64_bytes = 56, locator64_bytes = 20;
constexpr std::uint64_t max_comment = 65535;
// A 32-bit field with this value: the number is in the zip64 extra field, whose tag is 1.
constexpr std::uint32_t in_zip64 = 0xffffffff;
constexpr std::uint16_t zip64_tag = 1;

}  // namespace millrace::detail::zip
