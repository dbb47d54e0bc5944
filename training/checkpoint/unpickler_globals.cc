// The classes and functions that the pickle of a checkpoint may name: the containers, types and
// tensor-building functions of torch.load(weights_only=True), each reimplemented in a few lines.
#include "unpickler.h"

#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <array>

namespace millrace::detail {

namespace {

constexpr std::array<std::string_view, 13> functions{
    "collections.OrderedDict",
    "collections.Counter",
    "torch.Size",
    "torch.device",
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.set",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch.storage.UntypedStorage",
};
constexpr std::size_t max_dimensions = 64;

std::optional<ElementType> dtype_of_global(std::string_view name) {
  return name.starts_with("torch.") ? type_of_dtype(name.substr(6)) : std::nullopt;
}

std::optional<ElementType> storage_type_of_global(std::string_view name) {
  if (name == "torch.storage.UntypedStorage") return ElementType::uint8;
  return name.starts_with("torch.") ? type_of_storage_class(name.substr(6)) : std::nullopt;
}

}  // namespace

bool Unpickler::is_allowed(std::string_view name) {
  return std::find(functions.begin(), functions.end(), name) != functions.end() ||
         dtype_of_global(name) || storage_type_of_global(name);
}

const Unpickler::Node& Unpickler::expect(const std::vector<Id>& arguments, std::size_t place,
                                         Kind kind) const {
  if (place >= arguments.size() || nodes_[arguments[place]].kind != kind) {
    fail("its pickle calls a function with the wrong arguments");
  }
  return nodes_[arguments[place]];
}

std::vector<Unpickler::Id> Unpickler::copy_children(const std::vector<Id>& arguments, Kind kind) {
  const Node& node = expect(arguments, 0, kind);
  charge(node.children.size());
  return node.children;
}

Unpickler::Id Unpickler::call(const std::string& function, const std::vector<Id>& arguments) {
  constexpr std::string_view torch_utils = "torch._utils.";
  if (!function.starts_with(torch_utils)) return call_container(function, arguments);
  if (function.starts_with("torch._utils._rebuild_parameter")) {
    expect(arguments, 0, Kind::tensor);
    return arguments[0];
  }
  return rebuild_tensor(arguments, function.ends_with("_v3"));
}

Unpickler::Id Unpickler::call_container(const std::string& function,
                                        const std::vector<Id>& arguments) {
  if (function == "collections.OrderedDict") {
    Node dict{.kind = Kind::dict};
    if (!arguments.empty()) {
      for (Id pair : expect(arguments, 0, Kind::list).children) {
        const std::vector<Id>& both = nodes_[pair].children;
        charge(both.size());
        if (both.size() != 2) fail("its pickle makes a dictionary of what are no pairs");
        dict.children.insert(dict.children.end(), both.begin(), both.end());
      }
    }
    return add(std::move(dict));
  }
  if (function == "collections.Counter") {
    Node counter{.kind = Kind::dict};
    if (!arguments.empty()) counter.children = copy_children(arguments, Kind::dict);
    return add(std::move(counter));
  }
  if (function == "torch.Size") {
    return add({.kind = Kind::tuple, .children = copy_children(arguments, Kind::tuple)});
  }
  if (function == "builtins.set") {
    Node set{.kind = Kind::list};
    if (!arguments.empty()) set.children = copy_children(arguments, Kind::list);
    return add(std::move(set));
  }
  if (function == "torch.device") {
    Node device{.kind = Kind::text, .text = expect(arguments, 0, Kind::text).text};
    charge(device.text.size());
    if (arguments.size() > 1) {
      device.text.append(":").append(std::to_string(expect(arguments, 1, Kind::integer).integer));
    }
    return add(std::move(device));
  }
  if (function == "_codecs.encode" || function == "builtins.bytearray") {
    return add({.kind = Kind::bytes, .text = encode(arguments)});
  }
  fail("its pickle calls " + function);
}

// In protocol 2, bytes are their Latin-1 text and a call of encode() on it.
std::string Unpickler::encode(const std::vector<Id>& arguments) {
  if (arguments.empty()) return {};
  charge(nodes_[arguments[0]].text.size());
  if (nodes_[arguments[0]].kind == Kind::bytes) return nodes_[arguments[0]].text;
  const std::string& text = expect(arguments, 0, Kind::text).text;
  if (arguments.size() > 1 && !expect(arguments, 1, Kind::text).text.starts_with("latin")) {
    fail("holds bytes in an encoding other than Latin-1");
  }
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      bytes.push_back(text[i]);
      continue;
    }
    // UTF-8 has two bytes for 0x80 to 0xff; characters above are not Latin-1.
    if ((byte & 0xfc) != 0xc0 || i + 1 >= text.size()) fail("holds bytes that are no Latin-1");
    bytes.push_back(static_cast<char>(byte << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f)));
  }
  return bytes;
}

// ("storage", class, name of the record, device, number of elements)
Unpickler::Id Unpickler::load_storage(const std::vector<Id>& id) {
  if (id.size() != 5 || expect(id, 0, Kind::text).text != "storage") {
    fail("has a persistent id that is no storage");
  }
  if (!load_) fail("holds a tensor, and there is no archive to read it from");
  const auto type = storage_type_of_global(expect(id, 1, Kind::global).text);
  if (!type) fail("has a storage of type " + nodes_[id[1]].text);
  const std::string record = "data/" + expect(id, 2, Kind::text).text;
  const std::int64_t elements = expect(id, 4, Kind::integer).integer;

  auto found = records_.find(record);
  if (found == records_.end()) {
    storages_.push_back(load_(record));
    found = records_.emplace(record, storages_.size() - 1).first;
  }
  const std::size_t bytes = storages_[found->second].size();
  if (elements < 0 || static_cast<std::size_t>(elements) > bytes / size_of(*type)) {
    fail("claims " + std::to_string(elements) + " elements in " + record + ", which holds " +
         std::to_string(bytes) + " bytes");
  }
  return add({.kind = Kind::storage,
              .integer = static_cast<std::int64_t>(*type),
              .tensor = found->second});
}

std::vector<std::int64_t> Unpickler::integers(Id id) const {
  if (nodes_[id].kind != Kind::tuple || nodes_[id].children.size() > max_dimensions) {
    fail("has a tensor without a proper shape");
  }
  std::vector<std::int64_t> values;
  for (Id child : nodes_[id].children) {
    if (nodes_[child].kind != Kind::integer || nodes_[child].integer < 0)
      fail("has a tensor without a proper shape");
    values.push_back(nodes_[child].integer);
  }
  return values;
}

// (storage, offset, sizes, strides, requires_grad, hooks[, dtype][, {"conj": True, "neg": True}])
Unpickler::Id Unpickler::rebuild_tensor(const std::vector<Id>& arguments, bool untyped) {
  const Node& storage = expect(arguments, 0, Kind::storage);
  StoredTensor tensor{.type = static_cast<ElementType>(storage.integer),
                      .offset = expect(arguments, 1, Kind::integer).integer,
                      .storage = storages_[storage.tensor]};
  if (arguments.size() < 4) fail("has a tensor without a proper shape");
  tensor.sizes = integers(arguments[2]);
  tensor.strides = integers(arguments[3]);
  if (untyped) {
    const auto named = dtype_of_global(expect(arguments, 6, Kind::global).text);
    if (!named) fail("has a tensor without a type");
    tensor.type = *named;
  }
  if (const auto error = shape_error(tensor)) fail(*error);
  const std::size_t metadata = untyped ? 7 : 6;
  if (arguments.size() > metadata) read_metadata(arguments[metadata], tensor);
  tensors_.push_back(std::move(tensor));
  return add({.kind = Kind::tensor, .tensor = tensors_.size() - 1});
}

void Unpickler::read_metadata(Id id, StoredTensor& tensor) const {
  if (nodes_[id].kind != Kind::dict) return;
  const std::vector<Id>& flags = nodes_[id].children;
  for (std::size_t i = 0; i + 1 < flags.size(); i += 2) {
    const bool on = nodes_[flags[i + 1]].integer != 0;
    if (nodes_[flags[i]].text == "conj") tensor.conjugated = on && is_complex(tensor.type);
    if (nodes_[flags[i]].text == "neg") tensor.negated = on;
  }
}

}  // namespace millrace::detail
