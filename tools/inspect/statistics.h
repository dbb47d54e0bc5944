// Minimum, maximum and mean of a field, over rows spread evenly through a cache.
#pragma once

#include <millrace/pipeline/data/array.h>

#include <cstdint>
#include <limits>
#include <string>

namespace millrace {

struct FieldStatistics {
  std::int64_t rows = 0, elements = 0;
  std::int64_t not_finite = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max(), most = 0;  // elements in a row

  void add(const Array& value);
  double mean() const {
    std::int64_t finite = elements - not_finite;
    return finite > 0 ? sum / static_cast<double>(finite) : 0;
  }
};

// "3 1 4 1 5 ... (17 more)"
std::string first_values(const Array& value, std::int64_t count);

}  // namespace millrace
