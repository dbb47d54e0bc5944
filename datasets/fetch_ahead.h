// Private: asks the processor for the beginning of every page of a row that is copied next. Its own
// prefetcher follows a row inside a page, but it neither guesses a random row nor crosses pages.
#pragma once

#include <algorithm>
#include <cstddef>

namespace millrace {

inline void fetch_ahead(const std::byte* row, std::size_t bytes) {
  constexpr std::size_t page = 4096, line = 64, lines = 4, most = 4 * page;
  for (std::size_t at = 0; at < std::min(bytes, most); at += page) {
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(row + at + i * line);
  }
}

}  // namespace millrace
