// A value of a checkpoint: None, a number, a string, bytes, a tensor, or a list, tuple or
// dictionary of values. A dictionary keeps the order of its keys, as Python's does.
//
//   using namespace millrace;
//   Value state(Dict{{"step", 12}, {"betas", Tuple{{0.9, 0.999}}}});
//   std::string line = "step " + std::to_string(state["step"].as_int());  // throws if no integer
//   for (const auto& [key, value] : state.as_dict()) line += " " + key.as_string();
//
// This header needs no LibTorch. tensors.h makes values of torch::Tensor.
#pragma once

#include <millrace/training/checkpoint/stored_tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

class Value;

struct List {
  std::vector<Value> items;
};

struct Tuple {
  std::vector<Value> items;
};

struct PickleBytes {
  std::string data;
};

// A key can be any value that Python allows as a key; only strings and integers can be looked up.
class Dict {
 public:
  using Entries = std::vector<std::pair<Value, Value>>;

  Dict() = default;
  Dict(std::initializer_list<std::pair<Value, Value>> entries);

  // Adds the entry, or replaces the value of an existing key and keeps its place.
  Value& set(Value key, Value value);
  const Value* find(std::string_view key) const;
  const Value* find(std::int64_t key) const;
  // Throws an Error that names the missing key and the existing ones.
  const Value& at(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  Entries::const_iterator begin() const;
  Entries::const_iterator end() const;

 private:
  Entries entries_;
  std::unordered_map<std::string, std::size_t> by_name_;
  // Ordered: a hostile file could choose integers that share one bucket of a hash table.
  std::map<std::int64_t, std::size_t> by_number_;
};

class Value {
 public:
  Value() = default;  // None
  Value(bool value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(PickleBytes value) : data_(std::move(value)) {}
  Value(StoredTensor value) : data_(std::move(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Tuple value) : data_(std::move(value)) {}
  Value(Dict value) : data_(std::move(value)) {}

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  bool is_none() const { return is<std::monostate>(); }

  // Each throws an Error if the value is of another kind. as_double also converts integers.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const std::string& as_bytes() const;
  const StoredTensor& as_stored_tensor() const;
  const Dict& as_dict() const;
  const std::vector<Value>& as_list() const;  // of a list or a tuple

  // The entry of a dictionary. Throws if this is no dictionary or the key is missing.
  const Value& operator[](std::string_view key) const { return as_dict().at(key); }

  // "a tensor", "a string", ...
  const char* kind() const;

 private:
  [[noreturn]] void is_not(const char* wanted) const;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, PickleBytes, StoredTensor,
               List, Tuple, Dict>
      data_;
};

}  // namespace millrace
