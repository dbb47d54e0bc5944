// A Value as a pickle of protocol 2, in the few opcodes that torch.load(weights_only=True) knows.
// Tensors are written as views of storages; the storages themselves are left for the caller.
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace millrace {

struct Pickle {
  std::string bytes;
  std::vector<torch::Storage> storages;  // number i is the record data/i
};

class PickleWriter {
 public:
  // Throws if the value holds something that the format has no way to say.
  static Pickle write(const Value& value);

 private:
  void put(const Value& value, int depth);
  void put_integer(std::int64_t value);
  void put_string(std::string_view text);
  void put_items(const std::vector<Value>& items, int depth);
  void put_tuple(const std::vector<Value>& items, int depth);
  void put_dict(const Dict& dict, int depth);
  void put_bytes(const std::string& data);
  void put_tensor(torch::Tensor tensor);
  void put_sizes(torch::IntArrayRef sizes);
  std::size_t storage_number(const torch::Tensor& tensor);
  template <class T>
  void put_number(T value);
  void global(std::string_view module, std::string_view name);

  struct Known {
    std::size_t number;
    torch::ScalarType type;  // as which it was first written
  };
  Pickle pickle_;
  std::unordered_map<const void*, Known> known_;
  std::vector<torch::Tensor> kept_;  // copies made here live until all are written
};

}  // namespace millrace
