// The pickle of a checkpoint to a Value. It is a machine with a stack, a memo and a list of things
// that a pickle may ask for; none of them is code. What it makes is kept as flat nodes until the
// end, so that neither lists inside lists inside lists nor lists that hold themselves can exhaust
// the stack or the memory.
#pragma once

#include "zip_reader.h"

#include <millrace/training/checkpoint/value.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace {

class Unpickler {
 public:
  // Both must outlive the object. Storages are read from `archive` when the pickle names them.
  Unpickler(const std::string& pickle, const ZipReader& archive)
      : pickle_(pickle), archive_(&archive) {}
  // A pickle of plain values, without an archive.
  explicit Unpickler(const std::string& pickle) : pickle_(pickle) {}

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
    torch::Tensor tensor{};      // of a storage: all of it as bytes
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

  // What a pickle may ask for (unpickler_globals.cc).
  static bool is_allowed(std::string_view name);
  Id call(const std::string& function, const std::vector<Id>& arguments);
  Id call_container(const std::string& function, const std::vector<Id>& arguments);
  Id load_storage(const std::vector<Id>& id);
  Id rebuild_tensor(const std::vector<Id>& arguments, bool untyped);
  std::vector<std::int64_t> integers(Id id) const;
  const Node& expect(const std::vector<Id>& arguments, std::size_t place, Kind kind) const;
  std::string encode(const std::vector<Id>& arguments) const;

  // How many values, and bytes of text, a node comes to when everything shared is copied.
  void measure(Id id, int depth);
  Value to_value(Id id, int depth) const;

  const std::string& pickle_;
  const ZipReader* archive_ = nullptr;
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Id> memo_;
  std::unordered_map<std::string, torch::Tensor> storages_;
  struct Extent {
    std::size_t values = 0, text = 0;  // 0 values: not measured yet
  };
  std::vector<Extent> extents_;
};

}  // namespace millrace
