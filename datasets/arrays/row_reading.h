// Private: helpers for copying rows from mapped memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace millrace::detail {

// Number of rows that one task copies: about ten microseconds of work, so that starting a task is
// cheap in comparison.
inline std::int64_t rows_worth_a_task(std::int64_t row_bytes) {
  constexpr std::int64_t task_bytes = 256 << 10;
  return std::clamp<std::int64_t>(task_bytes / std::max<std::int64_t>(row_bytes, 1), 1, 64);
}

// Prefetches the beginning of every page of the row that is copied next. The hardware prefetcher
// follows a row inside a page, but it does not predict a random row and does not cross pages.
inline void fetch_ahead(const std::byte* row, std::size_t bytes) {
  constexpr std::size_t page = 4096, line = 64, lines = 2, most = 4 * page;
  for (std::size_t at = 0; at < std::min(bytes, most); at += page) {
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(row + at + i * line);
  }
}

}  // namespace millrace::detail
