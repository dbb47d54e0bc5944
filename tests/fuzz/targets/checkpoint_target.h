// For the targets that read checkpoints: reads every element of every tensor, so that a sanitizer
// sees a view that leaves its storage, and checks that values survive being written and read again.
#pragma once

#include <millrace/training/checkpoint/pickle_writer.h>
#include <millrace/training/checkpoint/value.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace millrace {

inline void touch_tensor(const StoredTensor& tensor) {
  volatile unsigned sum = 0;
  const std::size_t item = size_of(tensor.type);
  auto touch = [&](std::int64_t index) {
    std::int64_t place = tensor.offset;
    for (std::size_t d = tensor.sizes.size(); d > 0; --d) {
      place += index % tensor.sizes[d - 1] * tensor.strides[d - 1];
      index /= tensor.sizes[d - 1];
    }
    const std::byte* element = tensor.storage.data() + static_cast<std::size_t>(place) * item;
    sum = sum + static_cast<unsigned>(element[0]) + static_cast<unsigned>(element[item - 1]);
  };
  // A stride of 0 makes any number of elements of one; the first and the last ones are enough.
  const std::int64_t count = tensor.elements(), most = 4096;
  for (std::int64_t i = 0; i < count && i < most; ++i) touch(i);
  for (std::int64_t i = 0; i < count && i < most; ++i) touch(count - 1 - i);
}

inline void touch_value(const Value& value) {
  if (value.is<StoredTensor>()) touch_tensor(value.as_stored_tensor());
  if (value.is<List>() || value.is<Tuple>()) {
    for (const Value& item : value.as_list()) touch_value(item);
  }
  if (!value.is<Dict>()) return;
  for (const auto& [key, item] : value.as_dict()) {
    touch_value(key);
    touch_value(item);
  }
}

// `again` was written from a value whose pickle is `pickle`, and read.
inline void expect_same(const detail::Pickle& pickle, const Value& again) {
  const detail::Pickle second = detail::PickleWriter::write(again);
  if (second.bytes != pickle.bytes) std::abort();
  if (second.storages.size() != pickle.storages.size()) std::abort();
  for (std::size_t i = 0; i < pickle.storages.size(); ++i) {
    const auto first = pickle.storages[i].bytes(), other = second.storages[i].bytes();
    if (!std::equal(first.begin(), first.end(), other.begin(), other.end())) std::abort();
  }
}

}  // namespace millrace
