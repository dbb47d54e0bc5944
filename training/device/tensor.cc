#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/tensor.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace millrace {

namespace {

struct SameType {
  DType dtype;
  torch::ScalarType scalar;
};

constexpr SameType same_types[] = {
    {DType::boolean, torch::kBool},      {DType::uint8, torch::kUInt8},
    {DType::int8, torch::kInt8},         {DType::uint16, torch::kUInt16},
    {DType::int16, torch::kInt16},       {DType::uint32, torch::kUInt32},
    {DType::int32, torch::kInt32},       {DType::uint64, torch::kUInt64},
    {DType::int64, torch::kInt64},       {DType::float16, torch::kHalf},
    {DType::bfloat16, torch::kBFloat16}, {DType::float32, torch::kFloat32},
    {DType::float64, torch::kFloat64},
};

}  // namespace

torch::ScalarType to_scalar_type(DType dtype) {
  const auto* found = std::ranges::find(same_types, dtype, &SameType::dtype);
  if (found == std::end(same_types)) throw Error("an unknown dtype").kind(ErrorKind::usage);
  return found->scalar;
}

DType to_dtype(torch::ScalarType type) {
  const auto* found = std::ranges::find(same_types, type, &SameType::scalar);
  if (found == std::end(same_types)) {
    throw Error(std::string("an array cannot hold a tensor of ") + torch::toString(type))
        .kind(ErrorKind::usage);
  }
  return found->dtype;
}

torch::Tensor to_tensor(const Array& array) {
  std::vector<std::int64_t> shape(array.shape().begin(), array.shape().end());
  auto options = torch::TensorOptions().dtype(to_scalar_type(array.dtype()));
  if (array.memory() == Memory::device) options = options.device(torch::kCUDA);
  // The deleter holds a copy of the array, which keeps its memory alive.
  return torch::from_blob(
      array.data(), shape, [array](void*) {}, options);
}

Array to_array(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().to(torch::kCPU).contiguous();
  const std::span<const std::int64_t> sizes(dense.sizes().data(), dense.sizes().size());
  Array array = Array::empty(to_dtype(dense.scalar_type()), Shape(sizes));
  if (array.bytes() > 0) std::memcpy(array.data(), dense.const_data_ptr(), array.bytes());
  return array;
}

}  // namespace millrace
