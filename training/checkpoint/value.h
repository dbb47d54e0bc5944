// What a checkpoint holds: None, numbers, strings, bytes, tensors, and lists, tuples and
// dictionaries of those. A dictionary keeps the order of its keys, as Python's does.
//
//   Value state(Dict{{"step", 12}, {"model", to_value(named_tensors)}});
//   std::int64_t step = state["step"].as_int();        // an Error that says what stands there if
//   not for (const auto& [name, tensor] : state["model"].as_dict()) copy(name.as_string(), tensor);
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <torch/types.h>

namespace millrace {

class Value;

struct List {
  std::vector<Value> items;
};

struct Tuple {
  std::vector<Value> items;
};

struct Bytes {
  std::string data;
};

// Keys are strings, integers or whatever else Python allows; only strings and integers can be
// looked up.
class Dict {
 public:
  using Entries = std::vector<std::pair<Value, Value>>;

  Dict() = default;
  Dict(std::initializer_list<std::pair<Value, Value>> entries);

  // Replaces the value of a key that is there already, in its place.
  Value& set(Value key, Value value);
  const Value* find(std::string_view key) const;
  const Value* find(std::int64_t key) const;
  // Throws an Error that names the key and those that are there.
  const Value& at(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  Entries::const_iterator begin() const;
  Entries::const_iterator end() const;

 private:
  Entries entries_;
  std::unordered_map<std::string, std::size_t> by_name_;
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
  Value(Bytes value) : data_(std::move(value)) {}
  Value(torch::Tensor value) : data_(std::move(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Tuple value) : data_(std::move(value)) {}
  Value(Dict value) : data_(std::move(value)) {}

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  bool is_none() const { return is<std::monostate>(); }

  // Each throws an Error that says what stands there instead. as_double takes integers too.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const std::string& as_bytes() const;
  const torch::Tensor& as_tensor() const;
  const Dict& as_dict() const;
  const std::vector<Value>& as_list() const;  // of a list or a tuple

  // The entry of a dictionary; throws if it is none or has no such key.
  const Value& operator[](std::string_view key) const { return as_dict().at(key); }

  // "a tensor", "a string", ...
  const char* kind() const;

 private:
  [[noreturn]] void is_not(const char* wanted) const;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes, torch::Tensor, List,
               Tuple, Dict>
      data_;
};

// Named tensors, as state_dict() has them.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
Value to_value(const NamedTensors& tensors);

}  // namespace millrace
