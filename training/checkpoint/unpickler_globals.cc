// What the pickle of a checkpoint may ask for, and what it gets: the containers, types and
// tensor-building functions that Python's own reader of weights knows, each a few lines here.
#include "storage_types.h"
#include "unpickler.h"

#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <array>

#include <c10/util/StringUtil.h>

namespace millrace {

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

std::optional<c10::ScalarType> dtype_of_global(std::string_view name) {
  return name.starts_with("torch.") ? type_of_dtype(name.substr(6)) : std::nullopt;
}

std::optional<c10::ScalarType> storage_type_of_global(std::string_view name) {
  if (name == "torch.storage.UntypedStorage") return c10::ScalarType::Byte;
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
        if (both.size() != 2) fail("its pickle makes a dictionary of what are no pairs");
        dict.children.insert(dict.children.end(), both.begin(), both.end());
      }
    }
    return add(std::move(dict));
  }
  if (function == "collections.Counter") {
    Node counter{.kind = Kind::dict};
    if (!arguments.empty()) counter.children = expect(arguments, 0, Kind::dict).children;
    return add(std::move(counter));
  }
  if (function == "torch.Size") {
    return add({.kind = Kind::tuple, .children = expect(arguments, 0, Kind::tuple).children});
  }
  if (function == "builtins.set") {
    Node set{.kind = Kind::list};
    if (!arguments.empty()) set.children = expect(arguments, 0, Kind::list).children;
    return add(std::move(set));
  }
  if (function == "torch.device") {
    Node device{.kind = Kind::text, .text = expect(arguments, 0, Kind::text).text};
    if (arguments.size() > 1) {
      device.text.append(":").append(std::to_string(expect(arguments, 1, Kind::integer).integer));
    }
    return add(std::move(device));
  }
  if (function == "_codecs.encode" || function == "builtins.bytearray") {
    return add({.kind = Kind::bytes, .text = encode(arguments)});
  }
  fail(c10::str("its pickle calls ", function));
}

// bytes in protocol 2: their text in Latin-1, encoded.
std::string Unpickler::encode(const std::vector<Id>& arguments) const {
  if (arguments.empty()) return {};
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
    // Two bytes for 0x80 to 0xff; everything above is no Latin-1.
    if ((byte & 0xfc) != 0xc0 || i + 1 >= text.size()) fail("holds bytes that are no Latin-1");
    bytes.push_back(static_cast<char>(byte << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f)));
  }
  return bytes;
}

// ("storage", class, name of the record, device, number of elements)
Unpickler::Id Unpickler::load_storage(const std::vector<Id>& id) {
  if (id.size() != 5 || expect(id, 0, Kind::text).text != "storage")
    fail("has a persistent id that is no storage");
  if (archive_ == nullptr) fail("holds a tensor, and there is no archive to read it from");
  const auto type = storage_type_of_global(expect(id, 1, Kind::global).text);
  if (!type) fail(c10::str("has a storage of type ", nodes_[id[1]].text));
  const std::string record = c10::str("data/", expect(id, 2, Kind::text).text);
  const std::int64_t elements = expect(id, 4, Kind::integer).integer;

  auto found = storages_.find(record);
  if (found == storages_.end()) {
    const auto bytes = static_cast<std::int64_t>(archive_->size(record));
    torch::Tensor storage = torch::empty({bytes}, torch::kUInt8);
    archive_->read(record, storage.data_ptr());
    found = storages_.emplace(record, std::move(storage)).first;
  }
  const auto item = static_cast<std::int64_t>(c10::elementSize(*type));
  if (elements < 0 || elements > found->second.numel() / item) {
    fail(c10::str("claims ", elements, " elements in ", record, ", which holds ",
                  found->second.numel(), " bytes"));
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
  const std::int64_t offset = expect(arguments, 1, Kind::integer).integer;
  if (arguments.size() < 4 || offset < 0) fail("has a tensor without a proper shape");
  const std::vector<std::int64_t> sizes = integers(arguments[2]);
  const std::vector<std::int64_t> strides = integers(arguments[3]);
  auto type = static_cast<c10::ScalarType>(storage.integer);
  if (untyped) {
    const auto named = dtype_of_global(expect(arguments, 6, Kind::global).text);
    if (!named) fail("has a tensor without a type");
    type = *named;
  }
  // The last element that the view can see, and the number of elements, must be real numbers.
  std::int64_t last = offset, count = 1;
  if (sizes.size() != strides.size()) fail("has a tensor without a proper shape");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(count, sizes[i], &count) ||
        (sizes[i] > 0 && __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach)) ||
        __builtin_add_overflow(last, reach, &last)) {
      fail("has a tensor whose shape overflows");
    }
  }
  const std::int64_t held =
      storage.tensor.numel() / static_cast<std::int64_t>(c10::elementSize(type));
  if (count > 0 ? last >= held : offset > held) {
    fail(c10::str("has a tensor that reaches to element ", last, " of a storage of ", held));
  }
  torch::Tensor tensor = torch::empty({0}, torch::TensorOptions().dtype(type));
  tensor.set_(storage.tensor.storage(), offset, sizes, strides);

  const std::size_t metadata = untyped ? 7 : 6;
  if (arguments.size() > metadata && nodes_[arguments[metadata]].kind == Kind::dict) {
    const std::vector<Id>& flags = nodes_[arguments[metadata]].children;
    for (std::size_t i = 0; i + 1 < flags.size(); i += 2) {
      const bool on = nodes_[flags[i + 1]].integer != 0;
      if (on && nodes_[flags[i]].text == "conj" && tensor.is_complex()) tensor = tensor.conj();
      if (on && nodes_[flags[i]].text == "neg") tensor = tensor._neg_view();
    }
  }
  return add({.kind = Kind::tensor, .tensor = std::move(tensor)});
}

}  // namespace millrace
