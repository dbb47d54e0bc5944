// Writes a Value as a pickle of protocol 2, with the opcodes that torch.load(weights_only=True)
// knows. A tensor is written as a view of a numbered storage; the caller writes the storages.
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::detail {

struct Pickle {
  std::string bytes;
  std::vector<TensorStorage> storages;  // number i is the record data/i
};

class PickleWriter {
 public:
  // Throws an Error if the value cannot be written in this format.
  static Pickle write(const Value& value);

 private:
  void put(const Value& value, int depth);
  void put_integer(std::int64_t value);
  void put_string(std::string_view text);
  void put_items(const std::vector<Value>& items, int depth);
  void put_tuple(const std::vector<Value>& items, int depth);
  void put_dict(const Dict& dict, int depth);
  void put_bytes(const std::string& data);
  void put_tensor(const StoredTensor& tensor);
  void put_metadata(const StoredTensor& tensor);
  void put_sizes(std::span<const std::int64_t> sizes);
  struct Known {
    std::size_t number;
    ElementType type;  // of the first tensor written over this storage
  };
  const Known& number_of(const StoredTensor& tensor);
  template <class T>
  void put_number(T value);
  void global(std::string_view module, std::string_view name);

  // Two handles are of one storage if they see the same bytes, or, without bytes, have one owner.
  using Identity = std::pair<const void*, std::size_t>;
  Pickle pickle_;
  std::map<Identity, Known> known_;
};

}  // namespace millrace::detail
