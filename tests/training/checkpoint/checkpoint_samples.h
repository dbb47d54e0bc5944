// Small checkpoints for tests without LibTorch, and ways to look at them.
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

// The message of the Error, or "read".
inline std::string message_of(const std::filesystem::path& path) {
  try {
    read_checkpoint(path);
    return "read";
  } catch (const Error& error) {
    return error.what();
  }
}

inline std::string message_of_pickle(const std::string& pickle) {
  try {
    read_pickle(pickle);
    return "read";
  } catch (const Error& error) {
    return error.what();
  }
}

template <class T>
StoredTensor tensor_of(ElementType type, std::vector<std::int64_t> sizes,
                       const std::vector<T>& values) {
  StoredTensor tensor = StoredTensor::row_major(type, std::move(sizes));
  std::memcpy(tensor.storage.data(), values.data(), values.size() * sizeof(T));
  return tensor;
}

inline StoredTensor transposed(StoredTensor tensor) {
  std::swap(tensor.sizes[0], tensor.sizes[1]);
  std::swap(tensor.strides[0], tensor.strides[1]);
  return tensor;
}

// The elements of a view, in row-major order.
template <class T>
std::vector<T> elements_of(const StoredTensor& tensor) {
  std::vector<T> elements;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    std::int64_t place = tensor.offset, rest = i;
    for (std::size_t d = tensor.sizes.size(); d > 0; --d) {
      place += rest % tensor.sizes[d - 1] * tensor.strides[d - 1];
      rest /= tensor.sizes[d - 1];
    }
    T element;
    std::memcpy(&element, tensor.storage.data() + static_cast<std::size_t>(place) * sizeof(T),
                sizeof(T));
    elements.push_back(element);
  }
  return elements;
}

inline Value sample_checkpoint() {
  std::vector<float> numbers(600);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const StoredTensor a = tensor_of(ElementType::float32, {20, 30}, numbers);
  const StoredTensor c = tensor_of(ElementType::int64, {7}, std::vector<std::int64_t>(7, 1));
  return Dict{{"model", Dict{{"a", a}, {"b", transposed(a)}, {"c", c}}},
              {"step", 12},
              {"lr", 0.25},
              {"names", List{{"x", "y", Tuple{{1, 2}}}}}};
}

inline bool is_sample_checkpoint(const Value& value) {
  const Value want = sample_checkpoint();
  auto equal = [&]<class T>(const char* name, T) {
    const StoredTensor& got = value["model"][name].as_stored_tensor();
    const StoredTensor& wanted = want["model"][name].as_stored_tensor();
    return got.type == wanted.type && got.sizes == wanted.sizes &&
           elements_of<T>(got) == elements_of<T>(wanted);
  };
  return value["step"].as_int() == 12 && value["lr"].as_double() == 0.25 &&
         value["names"].as_list()[1].as_string() == "y" && equal("a", float{}) &&
         equal("b", float{}) && equal("c", std::int64_t{});
}

}  // namespace millrace
