#include "pickle_writer.h"

#include <millrace/pipeline/base/error.h>

#include <bit>
#include <limits>

namespace millrace::detail {

namespace {

constexpr int max_written_depth = 100;
// Python's pickler writes items in groups of this size.
constexpr std::size_t group = 1000;

}  // namespace

Pickle PickleWriter::write(const Value& value) {
  PickleWriter writer;
  writer.pickle_.bytes.append("\x80\x02", 2);  // PROTO 2
  writer.put(value, 0);
  writer.pickle_.bytes.push_back('.');  // STOP
  return std::move(writer.pickle_);
}

template <class T>
void PickleWriter::put_number(T value) {
  pickle_.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  pickle_.bytes.push_back('c');
  pickle_.bytes.append(module).push_back('\n');
  pickle_.bytes.append(name).push_back('\n');
}

void PickleWriter::put(const Value& value, int depth) {
  if (depth > max_written_depth)
    throw Error("a checkpoint must not be nested deeper than 100 levels");
  if (value.is_none()) {
    pickle_.bytes.push_back('N');
  } else if (value.is<bool>()) {
    pickle_.bytes.push_back(value.as_bool() ? '\x88' : '\x89');
  } else if (value.is<std::int64_t>()) {
    put_integer(value.as_int());
  } else if (value.is<double>()) {
    pickle_.bytes.push_back('G');  // BINFLOAT: big-endian
    put_number(__builtin_bswap64(std::bit_cast<std::uint64_t>(value.as_double())));
  } else if (value.is<std::string>()) {
    put_string(value.as_string());
  } else if (value.is<PickleBytes>()) {
    put_bytes(value.as_bytes());
  } else if (value.is<StoredTensor>()) {
    put_tensor(value.as_stored_tensor());
  } else if (value.is<Dict>()) {
    put_dict(value.as_dict(), depth);
  } else if (value.is<Tuple>()) {
    put_tuple(value.as_list(), depth);
  } else {
    put_items(value.as_list(), depth);
  }
}

void PickleWriter::put_integer(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    pickle_.bytes.push_back('J');  // BININT
    put_number(static_cast<std::int32_t>(value));
  } else {
    pickle_.bytes.append("\x8a\x08", 2);  // LONG1 of 8 bytes
    put_number(value);
  }
}

void PickleWriter::put_string(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error("a string of 4 GB or more cannot be saved");
  pickle_.bytes.push_back('X');  // BINUNICODE
  put_number(static_cast<std::uint32_t>(text.size()));
  pickle_.bytes.append(text);
}

// Protocol 2 has no bytes: as Python does, writes a call of encode() on their Latin-1 text.
void PickleWriter::put_bytes(const std::string& data) {
  std::string text;
  for (char c : data) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xc0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3f)));
    }
  }
  global("_codecs", "encode");
  put_string(text);
  put_string("latin1");
  pickle_.bytes.append("\x86R");  // TUPLE2, REDUCE
}

void PickleWriter::put_items(const std::vector<Value>& items, int depth) {
  pickle_.bytes.push_back(']');
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i % group == 0) pickle_.bytes.push_back('(');
    put(items[i], depth + 1);
    if (i % group == group - 1 || i + 1 == items.size()) pickle_.bytes.push_back('e');  // APPENDS
  }
}

void PickleWriter::put_tuple(const std::vector<Value>& items, int depth) {
  if (items.empty()) {
    pickle_.bytes.push_back(')');
    return;
  }
  pickle_.bytes.push_back('(');
  for (const Value& item : items) put(item, depth + 1);
  pickle_.bytes.push_back('t');
}

void PickleWriter::put_dict(const Dict& dict, int depth) {
  pickle_.bytes.push_back('}');
  std::size_t i = 0;
  for (const auto& [key, value] : dict) {
    if (i % group == 0) pickle_.bytes.push_back('(');
    put(key, depth + 1);
    put(value, depth + 1);
    if (i % group == group - 1 || i + 1 == dict.size()) pickle_.bytes.push_back('u');  // SETITEMS
    ++i;
  }
}

void PickleWriter::put_sizes(std::span<const std::int64_t> sizes) {
  pickle_.bytes.push_back('(');
  for (std::int64_t size : sizes) put_integer(size);
  pickle_.bytes.push_back('t');
}

const PickleWriter::Known& PickleWriter::number_of(const StoredTensor& tensor) {
  const TensorStorage& storage = tensor.storage;
  const void* start = storage.size() > 0 ? storage.data() : storage.owner().get();
  auto [found, added] =
      known_.try_emplace({start, storage.size()}, Known{pickle_.storages.size(), tensor.type});
  if (added) pickle_.storages.push_back(storage);
  return found->second;
}

// rebuild(storage, offset, sizes, strides, requires_grad, hooks[, dtype][, metadata]), the storage
// being a persistent id: ("storage", class, name of the record, device, number of elements).
void PickleWriter::put_tensor(const StoredTensor& tensor) {
  if (const auto error = shape_error(tensor)) throw Error("the value " + *error);
  const Known& known = number_of(tensor);
  const std::size_t bytes = tensor.storage.size(), item = size_of(tensor.type);
  // From the second type on, a storage is written by its bytes.
  auto storage = storage_class(tensor.type);
  if (known.type != tensor.type || bytes % item != 0) storage.reset();

  global("torch._utils", storage ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  pickle_.bytes.append("((");
  put_string("storage");
  global(storage ? "torch" : "torch.storage", storage ? *storage : "UntypedStorage");
  put_string(std::to_string(known.number));
  put_string("cpu");
  put_integer(static_cast<std::int64_t>(storage ? bytes / item : bytes));
  pickle_.bytes.append("tQ");  // TUPLE, BINPERSID
  put_integer(tensor.offset);
  put_sizes(tensor.sizes);
  put_sizes(tensor.strides);
  pickle_.bytes.push_back('\x89');  // requires_grad: False
  global("collections", "OrderedDict");
  pickle_.bytes.append(")R");
  if (!storage) global("torch", name_of(tensor.type));
  put_metadata(tensor);
  pickle_.bytes.append("tR");  // TUPLE, REDUCE
}

void PickleWriter::put_metadata(const StoredTensor& tensor) {
  if (!tensor.conjugated && !tensor.negated) return;
  Dict flags;
  if (tensor.conjugated) flags.set("conj", true);
  if (tensor.negated) flags.set("neg", true);
  put_dict(flags, 0);
}

}  // namespace millrace::detail
