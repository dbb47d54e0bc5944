// Rows for caches whose every value follows from the row's number, so that any reader, in any
// language, can tell what it should have found: element e of row i is (7 i + e) modulo 97, a field
// of variable shape has lengths i modulo 5 and so on, text i is "text <i> é".
#pragma once

#include <millrace/datasets/caches/cache_writer.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace millrace {

inline void fill_element(DType dtype, std::byte* to, std::int64_t value) {
  auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof typed); };
  switch (dtype) {
    case DType::boolean:
      return put(static_cast<std::uint8_t>(value % 2));
    case DType::uint8:
    case DType::int8:
      return put(static_cast<std::uint8_t>(value));
    case DType::uint16:
    case DType::int16:
    case DType::bfloat16:  // the bits
      return put(static_cast<std::uint16_t>(value));
    case DType::float16:  // whole numbers from 64 to 127, as bits
      return put(static_cast<std::uint16_t>(0x5400 + (value % 64) * 16));
    case DType::uint32:
    case DType::int32:
      return put(static_cast<std::uint32_t>(value));
    case DType::uint64:
    case DType::int64:
      return put(value);
    case DType::float32:
      return put(static_cast<float>(value) + 0.5F);
    case DType::float64:
      return put(static_cast<double>(value) + 0.25);
  }
}

inline Array row_value(const Field& field, std::int64_t index) {
  if (field.text) {
    std::string text = "text " + std::to_string(index) + " \u00e9";
    Array array = Array::empty(DType::uint8, {std::ssize(text)});
    std::memcpy(array.data(), text.data(), text.size());
    return array;
  }
  Shape shape = field.shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0) shape[axis] = (index + axis) % 5;
  }
  Array array = Array::empty(field.dtype, shape);
  for (std::int64_t e = 0; e < array.elements(); ++e) {
    auto at = static_cast<std::size_t>(e) * item_size(field.dtype);
    fill_element(field.dtype, array.data() + at, (7 * index + e) % 97);
  }
  return array;
}

inline std::vector<Array> row_of(const Schema& schema, std::int64_t index) {
  std::vector<Array> row;
  for (const Field& field : schema) row.push_back(row_value(field, index));
  return row;
}

inline CacheSource source_of(std::int64_t index) {
  return {"folder/file " + std::to_string(index) + ".png", 1000 + index, 1'700'000'000'000 + index};
}

// Every 10th source fails where `with_failures`.
inline bool is_bad(std::int64_t index) {
  return index % 10 == 3;
}

inline void write_shard(CacheWriter& writer, const Schema& schema, std::int64_t shard,
                        bool with_failures = false) {
  ShardWriter rows = writer.begin(shard);
  for (std::int64_t i : writer.range(shard)) {
    if (with_failures && is_bad(i)) {
      rows.fail(i, source_of(i), "cannot decode (broken)");
    } else {
      rows.append(i, source_of(i), row_of(schema, i));
    }
  }
  rows.finish();
}

inline CacheInfo write_cache(const std::filesystem::path& path, const Schema& schema,
                             std::int64_t sources, CacheOptions options = {},
                             bool with_failures = false) {
  CacheWriter writer(path,
                     {.schema = schema,
                      .sources = sources,
                      .fingerprint = "the list",
                      .options = {{"transform", "none"}}},
                     options);
  for (std::int64_t shard : writer.missing()) write_shard(writer, schema, shard, with_failures);
  return writer.join();
}

inline std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline bool same_elements(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

// Python's half: `value(i, e)` and what a row should be.
inline const char* const python_rows = R"(
import sys, json
import numpy as np
def expected(index, shape, dtype):
    n = int(np.prod(shape)) if len(shape) else 1
    v = (7 * index + np.arange(n)) % 97
    if dtype == 'bool': v = v % 2
    elif dtype == 'float16': v = 64 + v % 64
    elif dtype == 'float32': v = v + 0.5
    elif dtype == 'float64': v = v + 0.25
    return v.astype('uint16' if dtype == 'bfloat16' else dtype).reshape(shape)
def varied(index, shape):
    return [(index + a) % 5 if s < 0 else s for a, s in enumerate(shape)]
good = lambda n: [i for i in range(n) if i % 10 != 3]
)";

}  // namespace millrace
