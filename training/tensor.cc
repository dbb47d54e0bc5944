#include <millrace/pipeline/error.h>
#include <millrace/training/tensor.h>

#include <string>
#include <vector>

namespace millrace {

torch::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return torch::kBool;
    case DType::uint8:
      return torch::kUInt8;
    case DType::int8:
      return torch::kInt8;
    case DType::uint16:
      return torch::kUInt16;
    case DType::int16:
      return torch::kInt16;
    case DType::uint32:
      return torch::kUInt32;
    case DType::int32:
      return torch::kInt32;
    case DType::uint64:
      return torch::kUInt64;
    case DType::int64:
      return torch::kInt64;
    case DType::float16:
      return torch::kHalf;
    case DType::bfloat16:
      return torch::kBFloat16;
    case DType::float32:
      return torch::kFloat32;
    case DType::float64:
      return torch::kFloat64;
  }
  throw Error("an unknown dtype").kind(ErrorKind::usage);
}

torch::Tensor to_tensor(const Array& array) {
  std::vector<std::int64_t> shape(array.shape().begin(), array.shape().end());
  auto options = torch::TensorOptions().dtype(to_scalar_type(array.dtype()));
  if (array.memory() == Memory::device) options = options.device(torch::kCUDA);
  // The lambda's copy of the array is what keeps the bytes.
  return torch::from_blob(
      array.data(), shape, [array](void*) {}, options);
}

}  // namespace millrace
