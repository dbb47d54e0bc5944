#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace {

struct TypePair {
  c10::ScalarType torch;
  ElementType stored;
};

constexpr std::array type_pairs{
    TypePair{c10::ScalarType::Double, ElementType::float64},
    TypePair{c10::ScalarType::Float, ElementType::float32},
    TypePair{c10::ScalarType::Half, ElementType::float16},
    TypePair{c10::ScalarType::BFloat16, ElementType::bfloat16},
    TypePair{c10::ScalarType::Long, ElementType::int64},
    TypePair{c10::ScalarType::Int, ElementType::int32},
    TypePair{c10::ScalarType::Short, ElementType::int16},
    TypePair{c10::ScalarType::Char, ElementType::int8},
    TypePair{c10::ScalarType::Byte, ElementType::uint8},
    TypePair{c10::ScalarType::Bool, ElementType::boolean},
    TypePair{c10::ScalarType::ComplexDouble, ElementType::complex128},
    TypePair{c10::ScalarType::ComplexFloat, ElementType::complex64},
    TypePair{c10::ScalarType::ComplexHalf, ElementType::complex32},
    TypePair{c10::ScalarType::UInt16, ElementType::uint16},
    TypePair{c10::ScalarType::UInt32, ElementType::uint32},
    TypePair{c10::ScalarType::UInt64, ElementType::uint64},
    TypePair{c10::ScalarType::Float8_e5m2, ElementType::float8_e5m2},
    TypePair{c10::ScalarType::Float8_e4m3fn, ElementType::float8_e4m3fn},
    TypePair{c10::ScalarType::Float8_e5m2fnuz, ElementType::float8_e5m2fnuz},
    TypePair{c10::ScalarType::Float8_e4m3fnuz, ElementType::float8_e4m3fnuz},
    TypePair{c10::ScalarType::Float8_e8m0fnu, ElementType::float8_e8m0fnu},
    TypePair{c10::ScalarType::Float4_e2m1fn_x2, ElementType::float4_e2m1fn_x2},
};

std::optional<ElementType> stored_type(c10::ScalarType type) {
  for (const TypePair& pair : type_pairs) {
    if (pair.torch == type) return pair.stored;
  }
  return std::nullopt;
}

c10::ScalarType torch_type(ElementType type) {
  for (const TypePair& pair : type_pairs) {
    if (pair.stored == type) return pair.torch;
  }
  throw Error(c10::str("LibTorch has no type ", name_of(type)));
}

// The deleter of a storage's owner that keeps a storage of LibTorch alive. as_tensor() finds the
// storage again by the deleter's type.
struct TorchKeeper {
  torch::Storage storage;
  void operator()(const void* /*storage*/) const {}
};

torch::Storage torch_storage(const TensorStorage& storage) {
  if (const auto* keeper = std::get_deleter<TorchKeeper>(storage.owner())) return keeper->storage;
  auto owner = std::make_unique<TensorStorage>(storage);
  c10::DataPtr data(
      storage.data(), owner.release(), [](void* kept) { delete static_cast<TensorStorage*>(kept); },
      torch::kCPU);
  return {torch::Storage::use_byte_size_t(), storage.size(), std::move(data)};
}

using ByName = std::unordered_map<std::string, torch::Tensor>;

void copy_by_name(const std::vector<std::string>& names, const ByName& from, const NamedTensors& to,
                  const std::string& source) {
  auto fail = [&](const std::string& why) {
    throw Error(why).at(source).hint("Give the configuration that the checkpoint was made with");
  };
  std::unordered_set<std::string_view> wanted;
  for (const auto& [name, tensor] : to) {
    const auto found = from.find(name);
    if (found == from.end()) fail(c10::str("has no tensor '", name, "', which the model needs"));
    if (found->second.sizes() != tensor.sizes()) {
      fail(
          c10::str("'", name, "' is ", found->second.sizes(), ", the model's is ", tensor.sizes()));
    }
    wanted.insert(name);
  }
  for (const std::string& name : names) {
    if (!wanted.contains(name)) {
      fail(c10::str("has a tensor '", name, "', which the model does not have"));
    }
  }
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : to) tensor.copy_(from.at(name));
}

}  // namespace

Value to_value(const torch::Tensor& tensor) {
  if (!tensor.defined()) throw Error("an undefined tensor cannot be saved");
  const auto type = stored_type(tensor.scalar_type());
  if (tensor.layout() != torch::kStrided || tensor.is_meta() || !type) {
    throw Error(c10::str("a tensor of type ", tensor.toString(), " cannot be saved"));
  }
  const torch::Tensor held = tensor.detach().resolve_conj().resolve_neg().cpu();
  const torch::Storage& storage = held.storage();
  std::shared_ptr<const void> owner(static_cast<const void*>(storage.unsafeGetStorageImpl()),
                                    TorchKeeper{storage});
  return StoredTensor{
      .type = *type,
      .sizes = held.sizes().vec(),
      .strides = held.strides().vec(),
      .offset = held.storage_offset(),
      .storage = TensorStorage::borrow(storage.mutable_data(), storage.nbytes(), std::move(owner))};
}

Value to_value(const NamedTensors& tensors) {
  Dict dict;
  for (const auto& [name, tensor] : tensors) dict.set(name, to_value(tensor));
  return dict;
}

torch::Tensor as_tensor(const Value& value) {
  const StoredTensor& stored = value.as_stored_tensor();
  if (const auto error = detail::shape_error(stored)) throw Error("the value " + *error);
  torch::NoGradGuard no_grad;
  torch::Tensor tensor = torch::empty({0}, torch::TensorOptions().dtype(torch_type(stored.type)));
  tensor.set_(torch_storage(stored.storage), stored.offset, stored.sizes, stored.strides);
  if (stored.conjugated) tensor = tensor.conj();
  if (stored.negated) tensor = tensor._neg_view();
  return tensor;
}

void copy_tensors(const Value& from, const NamedTensors& to, const std::string& source) {
  std::vector<std::string> names;
  ByName tensors;
  std::unordered_set<std::string_view> wanted;
  for (const auto& [name, tensor] : to) wanted.insert(name);
  for (const auto& [name, value] : from.as_dict()) {
    names.push_back(name.as_string());
    // What the model does not have is named by copy_by_name(), whatever its kind is.
    if (wanted.contains(names.back())) tensors.emplace(names.back(), as_tensor(value));
  }
  copy_by_name(names, tensors, to, source);
}

void copy_tensors(const NamedTensors& from, const NamedTensors& to, const std::string& source) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : from) names.push_back(name);
  copy_by_name(names, ByName(from.begin(), from.end()), to, source);
}

}  // namespace millrace
