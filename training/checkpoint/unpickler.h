// Reads the pickle of a checkpoint into a Value. It is a stack machine with a memo and a list of
// the classes and functions that a pickle may name; it never runs code. Results are kept as flat
// nodes until the end, so deeply nested lists and lists that contain themselves exhaust neither the
// call stack nor the memory.
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::detail {

// Returns the storage in the record of that name ("data/0"). Throws an Error if there is none.
using LoadStorage = std::function<TensorStorage(const std::string& record)>;

class Unpickler {
 public:
  // `pickle` must outlive the object. Without `load` the pickle may hold no tensors.
  explicit Unpickler(const std::string& pickle, LoadStorage load = {})
      : pickle_(pickle), load_(std::move(load)) {}

  Value read();

 private:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    bytes,
    list,
    tuple,
    dict,
    global,
    storage,
    tensor
  };
  struct Node {
    Kind kind = Kind::none;
    std::int64_t integer = 0;
    double real = 0;
    std::string text{};          // of text and bytes; the name of a global
    std::vector<Id> children{};  // of a dictionary: key, value, key, value, ...
    std::size_t tensor = 0;      // of a tensor: its place in tensors_; of a storage: in storages_
  };

  [[noreturn]] void fail(const std::string& why) const;

  // The machine (unpickler.cc).
  void run();
  bool step(unsigned char opcode);
  bool step_over_containers(unsigned char opcode);
  bool step_over_scalars(unsigned char opcode);
  std::string_view take(std::size_t count);
  template <class T>
  T take_number();
  std::string_view take_line();
  Id add(Node node);
  void push(Node node) { stack_.push_back(add(std::move(node))); }
  Id pop();
  Id& top();
  std::vector<Id> pop_to_mark();
  void pop_to_tuple(std::size_t count);
  void append(Id target, Kind kind, const std::vector<Id>& items);
  void take_global();
  void take_long();
  void remember(std::size_t place);
  void recall(std::size_t place);
  void reduce();
  void load_persistent();
  void set_attributes();
  // Counts what is copied when shared nodes are used again: text and children.
  void charge(std::size_t copied);

  // The classes and functions that a pickle may name (unpickler_globals.cc).
  static bool is_allowed(std::string_view name);
  Id call(const std::string& function, const std::vector<Id>& arguments);
  Id call_container(const std::string& function, const std::vector<Id>& arguments);
  Id load_storage(const std::vector<Id>& id);
  Id rebuild_tensor(const std::vector<Id>& arguments, bool untyped);
  void read_metadata(Id id, StoredTensor& tensor) const;
  std::vector<std::int64_t> integers(Id id) const;
  const Node& expect(const std::vector<Id>& arguments, std::size_t place, Kind kind) const;
  std::string encode(const std::vector<Id>& arguments);
  std::vector<Id> copy_children(const std::vector<Id>& arguments, Kind kind);

  // Counts the values and the bytes of text that a node expands to when shared nodes are copied.
  void measure(Id id, int depth);
  Value to_value(Id id, int depth) const;

  const std::string& pickle_;
  LoadStorage load_;
  std::size_t at_ = 0;
  std::size_t copied_ = 0;
  std::vector<Node> nodes_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Id> memo_;  // `no_node` where nothing was stored
  std::size_t remembered_ = 0;
  std::vector<StoredTensor> tensors_;
  std::vector<TensorStorage> storages_;
  std::unordered_map<std::string, std::size_t> records_;  // name: place in storages_
  struct Extent {
    std::size_t values = 0, text = 0;  // 0 values: not measured yet
  };
  std::vector<Extent> extents_;
};

}  // namespace millrace::detail
