// Private: decompresses gzip.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace::detail {

bool is_gzip(std::span<const std::byte> bytes);
// Returns an Error if the result would be larger than `max_bytes`.
Status gunzip(std::span<const std::byte> bytes, std::int64_t max_bytes, std::string& out);

}  // namespace millrace::detail
