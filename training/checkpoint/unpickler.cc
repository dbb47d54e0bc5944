#include "unpickler.h"

#include <millrace/pipeline/base/error.h>

#include <bit>
#include <cstring>

namespace millrace::detail {

namespace {

// A checkpoint of 100,000 tensors has a pickle of some 20 MB and a million nodes.
constexpr std::size_t max_nodes = 8'000'000;
constexpr std::size_t max_values = 8'000'000;
constexpr std::size_t max_text = std::size_t{1} << 30;
constexpr int max_depth = 100;
constexpr std::uint32_t no_node = 0xffffffff;
// Python writes a shared value once and names it again, so a pickle expands. By how much is
// limited: a few hundred bytes must not become gigabytes.
constexpr std::size_t expansion = 16;
constexpr std::size_t free_values = 1'000'000;
constexpr std::size_t free_text = std::size_t{16} << 20;

}  // namespace

void Unpickler::fail(const std::string& why) const {
  throw Error(why + " (byte " + std::to_string(at_) + " of its pickle)");
}

Value Unpickler::read() {
  run();
  if (stack_.size() != 1 || !marks_.empty()) fail("its pickle does not end as it should");
  extents_.resize(nodes_.size());
  measure(stack_[0], 0);
  const Extent& whole = extents_[stack_[0]];
  if (whole.values > free_values + expansion * pickle_.size() ||
      whole.text > free_text + expansion * pickle_.size()) {
    fail("expands to much more than its pickle holds");
  }
  return to_value(stack_[0], 0);
}

std::string_view Unpickler::take(std::size_t count) {
  if (count > pickle_.size() - at_) fail("its pickle is cut short");
  std::string_view taken(pickle_.data() + at_, count);
  at_ += count;
  return taken;
}

template <class T>
T Unpickler::take_number() {
  T value;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

std::string_view Unpickler::take_line() {
  const std::size_t end = pickle_.find('\n', at_);
  if (end == std::string::npos) fail("its pickle is cut short");
  std::string_view line = take(end - at_);
  ++at_;
  return line;
}

Unpickler::Id Unpickler::add(Node node) {
  if (nodes_.size() >= max_nodes) fail("holds more than 8 million values");
  nodes_.push_back(std::move(node));
  return static_cast<Id>(nodes_.size() - 1);
}

Unpickler::Id& Unpickler::top() {
  // Items below the last mark belong to an unfinished container.
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    fail("its pickle takes from an empty stack");
  return stack_.back();
}

Unpickler::Id Unpickler::pop() {
  Id id = top();
  stack_.pop_back();
  return id;
}

std::vector<Unpickler::Id> Unpickler::pop_to_mark() {
  if (marks_.empty()) fail("its pickle ends a group that was not begun");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Id> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void Unpickler::pop_to_tuple(std::size_t count) {
  Node tuple{.kind = Kind::tuple, .children = std::vector<Id>(count)};
  for (std::size_t i = count; i > 0; --i) tuple.children[i - 1] = pop();
  push(std::move(tuple));
}

void Unpickler::append(Id target, Kind kind, const std::vector<Id>& items) {
  Node& node = nodes_[target];
  if (node.kind != kind) fail("its pickle adds items to what holds none");
  if (kind == Kind::dict && items.size() % 2 != 0) fail("its pickle has a key without a value");
  node.children.insert(node.children.end(), items.begin(), items.end());
}

void Unpickler::take_global() {
  std::string name(take_line());
  name.append(".").append(take_line());
  if (name.starts_with("__builtin__.")) name.replace(0, 11, "builtins");
  if (!is_allowed(name)) {
    throw Error("asks for " + name +
                ", which is neither a tensor nor a plain value; nothing was run")
        .hint("A checkpoint holds tensors, numbers, strings, lists and dictionaries only");
  }
  push({.kind = Kind::global, .text = std::move(name)});
}

void Unpickler::take_long() {
  const std::string_view bytes = take(take_number<std::uint8_t>());
  if (bytes.size() > 8) fail("holds an integer of more than 64 bits");
  // Little-endian two's complement, as short as it can be.
  std::uint64_t value = !bytes.empty() && (bytes.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  push({.kind = Kind::integer, .integer = static_cast<std::int64_t>(value)});
}

void Unpickler::run() {
  while (true) {
    const auto opcode = take_number<unsigned char>();
    if (opcode == '.') return;
    if (step_over_scalars(opcode) || step_over_containers(opcode) || step(opcode)) continue;
    fail("its pickle uses the opcode " + std::to_string(opcode) + ", which no checkpoint needs");
  }
}

bool Unpickler::step_over_scalars(unsigned char opcode) {
  switch (opcode) {
    case 'N':
      return push({}), true;
    case 0x88:
    case 0x89:
      return push({.kind = Kind::boolean, .integer = opcode == 0x88}), true;
    case 'J':
      return push({.kind = Kind::integer, .integer = take_number<std::int32_t>()}), true;
    case 'K':
      return push({.kind = Kind::integer, .integer = take_number<std::uint8_t>()}), true;
    case 'M':
      return push({.kind = Kind::integer, .integer = take_number<std::uint16_t>()}), true;
    case 0x8a:
      return take_long(), true;
    case 'G': {
      const auto bits = __builtin_bswap64(take_number<std::uint64_t>());
      return push({.kind = Kind::real, .real = std::bit_cast<double>(bits)}), true;
    }
    case 'X':
      return push({.kind = Kind::text, .text = std::string(take(take_number<std::uint32_t>()))}),
             true;
    case 'U':   // a string of Python 2
    case 0x8c:  // SHORT_BINUNICODE
      return push({.kind = Kind::text, .text = std::string(take(take_number<std::uint8_t>()))}),
             true;
    case 'C':
      return push({.kind = Kind::bytes, .text = std::string(take(take_number<std::uint8_t>()))}),
             true;
    case 'B':
      return push({.kind = Kind::bytes, .text = std::string(take(take_number<std::uint32_t>()))}),
             true;
    default:
      return false;
  }
}

bool Unpickler::step_over_containers(unsigned char opcode) {
  switch (opcode) {
    case '(':
      return marks_.push_back(stack_.size()), true;
    case '}':
      return push({.kind = Kind::dict}), true;
    case ']':
      return push({.kind = Kind::list}), true;
    case ')':
      return push({.kind = Kind::tuple}), true;
    case 't':
      return push({.kind = Kind::tuple, .children = pop_to_mark()}), true;
    case 0x85:
    case 0x86:
    case 0x87:
      return pop_to_tuple(opcode - 0x84U), true;
    case 'a': {
      const Id item = pop();
      return append(top(), Kind::list, {item}), true;
    }
    case 'e': {
      const std::vector<Id> items = pop_to_mark();
      return append(top(), Kind::list, items), true;
    }
    case 's': {
      const Id value = pop();
      const Id key = pop();
      return append(top(), Kind::dict, {key, value}), true;
    }
    case 'u': {
      const std::vector<Id> items = pop_to_mark();
      return append(top(), Kind::dict, items), true;
    }
    default:
      return false;
  }
}

bool Unpickler::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      return take(1), true;
    case 0x95:  // FRAME: the length of the bytes that follow
      return take(8), true;
    case 0x94:  // MEMOIZE
      return remember(remembered_), true;
    case 'q':
      return remember(take_number<std::uint8_t>()), true;
    case 'r':
      return remember(take_number<std::uint32_t>()), true;
    case 'h':
      return recall(take_number<std::uint8_t>()), true;
    case 'j':
      return recall(take_number<std::uint32_t>()), true;
    case 'c':
      return take_global(), true;
    case 'R':
      return reduce(), true;
    case 'Q':
      return load_persistent(), true;
    case 'b':
      return set_attributes(), true;
    default:
      return false;
  }
}

void Unpickler::remember(std::size_t place) {
  // Python numbers from 0; a place beyond the number of values is not from Python.
  if (place >= max_nodes) fail("its pickle stores a value at place " + std::to_string(place));
  if (place >= memo_.size()) memo_.resize(place + 1, no_node);
  if (memo_[place] == no_node) ++remembered_;
  memo_[place] = top();
}

void Unpickler::recall(std::size_t place) {
  if (place >= memo_.size() || memo_[place] == no_node) {
    fail("its pickle recalls what it never stored");
  }
  stack_.push_back(memo_[place]);
}

void Unpickler::charge(std::size_t copied) {
  copied_ += copied;
  if (copied_ > free_text + expansion * pickle_.size()) {
    fail("expands to much more than its pickle holds");
  }
}

void Unpickler::reduce() {
  const Id arguments = pop();
  const Id function = pop();
  if (nodes_[function].kind != Kind::global || nodes_[arguments].kind != Kind::tuple) {
    fail("its pickle calls what is no function");
  }
  charge(nodes_[arguments].children.size());
  // Copies: the call adds nodes, which moves the others.
  const std::string name = nodes_[function].text;
  const std::vector<Id> children = nodes_[arguments].children;
  stack_.push_back(call(name, children));
}

void Unpickler::load_persistent() {
  const Id id = pop();
  if (nodes_[id].kind != Kind::tuple) fail("its pickle has a persistent id that is no tuple");
  charge(nodes_[id].children.size());
  const std::vector<Id> children = nodes_[id].children;
  stack_.push_back(load_storage(children));
}

// Ignores attributes, e.g. the _metadata of a state_dict: they hold nothing that is needed.
void Unpickler::set_attributes() {
  pop();
  const Kind kind = nodes_[top()].kind;
  if (kind != Kind::dict && kind != Kind::tensor) {
    fail("its pickle sets the attributes of a plain value");
  }
}

// A list that holds another list twice, which holds another twice, and so on, is short in the file
// and endless in memory.
void Unpickler::measure(Id id, int depth) {
  if (depth > max_depth) fail("is nested deeper than 100 levels, or holds itself");
  if (extents_[id].values > 0) return;
  Extent sum{.values = 1, .text = nodes_[id].text.size()};
  for (Id child : nodes_[id].children) {
    measure(child, depth + 1);
    sum.values += extents_[child].values;
    sum.text += extents_[child].text;
    if (sum.values > max_values) fail("holds more than 8 million values");
    if (sum.text > max_text) fail("expands to much more than its pickle holds");
  }
  extents_[id] = sum;
}

Value Unpickler::to_value(Id id, int depth) const {
  if (depth > max_depth) fail("is nested deeper than 100 levels");
  const Node& node = nodes_[id];
  auto items = [&] {
    std::vector<Value> values;
    for (Id child : node.children) values.push_back(to_value(child, depth + 1));
    return values;
  };
  switch (node.kind) {
    case Kind::none:
      return {};
    case Kind::boolean:
      return node.integer != 0;
    case Kind::integer:
      return node.integer;
    case Kind::real:
      return node.real;
    case Kind::text:
      return node.text;
    case Kind::bytes:
      return PickleBytes{node.text};
    case Kind::list:
      return List{items()};
    case Kind::tuple:
      return Tuple{items()};
    case Kind::tensor:
      return tensors_[node.tensor];
    case Kind::global:  // a dtype, e.g. "torch.bfloat16"
      return node.text;
    case Kind::storage:
      fail("holds a storage that is no tensor");
    case Kind::dict: {
      Dict dict;
      for (std::size_t i = 0; i < node.children.size(); i += 2) {
        Value key = to_value(node.children[i], depth + 1);
        dict.set(std::move(key), to_value(node.children[i + 1], depth + 1));
      }
      return dict;
    }
  }
  fail("is damaged");
}

}  // namespace millrace::detail
