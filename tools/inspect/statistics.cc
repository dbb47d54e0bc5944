#include "tools/inspect/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include <fmt/format.h>

namespace millrace {

namespace {

double from_half(std::uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  double fraction = (bits & 1023) / 1024.0;
  double value = exponent == 0    ? std::ldexp(fraction, -14)
                 : exponent == 31 ? (fraction == 0 ? HUGE_VAL : NAN)
                                  : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
void each_of(const Array& value, const std::function<void(double)>& use) {
  for (T element : value.as<const T>()) use(static_cast<double>(element));
}

void each(const Array& value, const std::function<void(double)>& use) {
  switch (value.dtype()) {
    case DType::boolean:
      return each_of<bool>(value, use);
    case DType::uint8:
      return each_of<std::uint8_t>(value, use);
    case DType::int8:
      return each_of<std::int8_t>(value, use);
    case DType::uint16:
      return each_of<std::uint16_t>(value, use);
    case DType::int16:
      return each_of<std::int16_t>(value, use);
    case DType::uint32:
      return each_of<std::uint32_t>(value, use);
    case DType::int32:
      return each_of<std::int32_t>(value, use);
    case DType::uint64:
      return each_of<std::uint64_t>(value, use);
    case DType::int64:
      return each_of<std::int64_t>(value, use);
    case DType::float32:
      return each_of<float>(value, use);
    case DType::float64:
      return each_of<double>(value, use);
    case DType::float16:
    case DType::bfloat16: {
      const auto* bits = reinterpret_cast<const std::uint16_t*>(value.data());
      for (std::int64_t i = 0; i < value.elements(); ++i) {
        auto wide = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
        use(value.dtype() == DType::float16 ? from_half(bits[i]) : static_cast<double>(wide));
      }
    }
  }
}

}  // namespace

void FieldStatistics::add(const Array& value) {
  ++rows;
  elements += value.elements();
  fewest = std::min(fewest, value.elements());
  most = std::max(most, value.elements());
  each(value, [this](double x) {
    if (!std::isfinite(x)) {
      ++not_finite;
      return;
    }
    low = std::min(low, x);
    high = std::max(high, x);
    sum += x;
  });
}

std::string first_values(const Array& value, std::int64_t count) {
  std::string text;
  std::int64_t n = 0;
  std::int64_t shown = std::min(count, value.elements());
  Array head(value.dtype(), {shown}, value.buffer(),
             static_cast<std::size_t>(value.data() - value.buffer().data()));
  each(head, [&](double x) { text += fmt::format("{}{:.6g}", n++ == 0 ? "" : " ", x); });
  if (value.elements() > shown) text += fmt::format(" ... ({} more)", value.elements() - shown);
  return text;
}

}  // namespace millrace
