#include "pickle_writer.h"

#include "storage_types.h"

#include <millrace/pipeline/base/error.h>

#include <bit>
#include <limits>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace {

constexpr int max_depth = 100;
// Python's unpickler takes items in groups; so does everybody who writes them.
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
  if (depth > max_depth) throw Error("a checkpoint must not be nested deeper than 100 levels");
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
  } else if (value.is<Bytes>()) {
    put_bytes(value.as_bytes());
  } else if (value.is<torch::Tensor>()) {
    put_tensor(value.as_tensor());
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
    throw Error("a string of 4 GB or more");
  pickle_.bytes.push_back('X');  // BINUNICODE
  put_number(static_cast<std::uint32_t>(text.size()));
  pickle_.bytes.append(text);
}

// Protocol 2 has no bytes: Python writes a call of encode on their Latin-1 text.
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

void PickleWriter::put_sizes(torch::IntArrayRef sizes) {
  pickle_.bytes.push_back('(');
  for (std::int64_t size : sizes) put_integer(size);
  pickle_.bytes.push_back('t');
}

std::size_t PickleWriter::storage_number(const torch::Tensor& tensor) {
  const void* key = tensor.storage().unsafeGetStorageImpl();
  auto [found, added] =
      known_.try_emplace(key, Known{pickle_.storages.size(), tensor.scalar_type()});
  if (added) {
    pickle_.storages.push_back(tensor.storage());
    kept_.push_back(tensor);
  }
  return found->second.number;
}

// rebuild(storage, offset, sizes, strides, requires_grad, hooks), the storage being a persistent
// id: ("storage", class, name of the record, device, number of elements).
void PickleWriter::put_tensor(torch::Tensor tensor) {
  if (!tensor.defined()) throw Error("an undefined tensor cannot be saved");
  const auto dtype = dtype_name(tensor.scalar_type());
  if (tensor.layout() != torch::kStrided || tensor.is_meta() || !dtype) {
    throw Error(c10::str("a tensor of type ", tensor.toString(), " cannot be saved"));
  }
  tensor = tensor.detach().resolve_conj().resolve_neg().cpu();
  const std::size_t number = storage_number(tensor);
  auto storage = storage_class(tensor.scalar_type());
  const auto bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
  // A storage seen as two types: from the second on, by its bytes.
  const bool retyped =
      known_.at(tensor.storage().unsafeGetStorageImpl()).type != tensor.scalar_type();
  if (retyped || bytes % tensor.element_size() != 0) storage.reset();

  global("torch._utils", storage ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  pickle_.bytes.append("((");
  put_string("storage");
  global(storage ? "torch" : "torch.storage", storage ? *storage : "UntypedStorage");
  put_string(std::to_string(number));
  put_string("cpu");
  put_integer(storage ? bytes / tensor.element_size() : bytes);
  pickle_.bytes.append("tQ");  // TUPLE, BINPERSID
  put_integer(tensor.storage_offset());
  put_sizes(tensor.sizes());
  put_sizes(tensor.strides());
  pickle_.bytes.push_back('\x89');  // requires_grad: False
  global("collections", "OrderedDict");
  pickle_.bytes.append(")R");
  if (!storage) global("torch", *dtype);
  pickle_.bytes.append("tR");  // TUPLE, REDUCE
}

}  // namespace millrace
