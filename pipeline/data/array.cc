#include <millrace/pipeline/data/array.h>

#include <cstring>
#include <memory>

#include <dlpack/dlpack.h>

namespace millrace {

Array::Array(DType dtype, const Shape& shape, Buffer buffer, std::size_t offset)
    : buffer_(std::move(buffer)), offset_(offset), shape_(shape), dtype_(dtype) {
  if (!shape.is_fixed()) {
    throw Error("an array needs a fixed shape, not " + to_string(shape)).kind(ErrorKind::usage);
  }
  if (offset > buffer_.size() || bytes() > buffer_.size() - offset) {
    throw Error("an array of " + to_string(*this) + " needs " + std::to_string(bytes()) +
                " bytes, but its buffer has " + std::to_string(buffer_.size()) + " from offset " +
                std::to_string(offset))
        .kind(ErrorKind::usage);
  }
}

Array Array::empty(DType dtype, const Shape& shape) {
  if (!shape.is_fixed()) {
    throw Error("an array needs a fixed shape, not " + to_string(shape)).kind(ErrorKind::usage);
  }
  std::size_t bytes = static_cast<std::size_t>(shape.elements()) * item_size(dtype);
  return Array(dtype, shape, Buffer::allocate(bytes));
}

Array Array::row(std::int64_t index) const {
  if (shape_.empty() || index < 0 || index >= shape_[0]) {
    throw Error("there is no row " + std::to_string(index) + " in " + to_string(*this))
        .kind(ErrorKind::usage);
  }
  Shape inner = shape_.without_front();
  std::size_t row_bytes = static_cast<std::size_t>(inner.elements()) * item_size(dtype_);
  return Array(dtype_, inner, buffer_, offset_ + static_cast<std::size_t>(index) * row_bytes);
}

Array Array::reshaped(const Shape& shape) const {
  if (!shape.is_fixed() || shape.elements() != elements()) {
    throw Error(to_string(*this) + " cannot be seen as " + to_string(shape)).kind(ErrorKind::usage);
  }
  return Array(dtype_, shape, buffer_, offset_);
}

Array Array::clone() const {
  if (memory() == Memory::device) {
    throw Error("an array on a device cannot be cloned by the host").kind(ErrorKind::usage);
  }
  Array copy = empty(dtype_, shape_);
  if (bytes() > 0) std::memcpy(copy.data(), data(), bytes());
  return copy;
}

void Array::check_access(DType wanted, bool reading) const {
  if (memory() == Memory::device) {
    throw Error("the elements are on a device; the host cannot read them").kind(ErrorKind::usage);
  }
  if (memory() == Memory::mapped && !reading) {
    throw Error("the array is a view of a file and cannot be written")
        .kind(ErrorKind::usage)
        .hint("Read it with as<const T>(), or clone() it");
  }
  bool half_as_bits =
      wanted == DType::uint16 && (dtype_ == DType::float16 || dtype_ == DType::bfloat16);
  if (wanted != dtype_ && !half_as_bits) {
    throw Error("the array holds " + std::string(name_of(dtype_)) + ", not " +
                std::string(name_of(wanted)))
        .kind(ErrorKind::usage);
  }
}

std::string to_string(const Array& array) {
  return std::string(name_of(array.dtype())) + " " + to_string(array.shape());
}

namespace {

// Owned by an exported tensor: the array that keeps the bytes alive, and the shape.
struct Exported {
  Array array;
  std::int64_t shape[Shape::max_rank];
  DLManagedTensor tensor;
};

DLDataType dlpack_type(DType dtype) {
  constexpr std::uint8_t kDLBoolSince08 = 6;  // not in DLPack's header before version 0.8
  auto bits = static_cast<std::uint8_t>(8 * item_size(dtype));
  switch (dtype) {
    case DType::boolean:
      return {kDLBoolSince08, 8, 1};
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      return {kDLInt, bits, 1};
    case DType::bfloat16:
      return {kDLBfloat, bits, 1};
    case DType::float16:
    case DType::float32:
    case DType::float64:
      return {kDLFloat, bits, 1};
    default:
      return {kDLUInt, bits, 1};
  }
}

}  // namespace

DLManagedTensor* to_dlpack(const Array& array) {
  auto exported = std::make_unique<Exported>();
  // A view of a file is read-only, which this version of DLPack cannot express.
  bool shareable = array.buffer().owned() && array.memory() != Memory::mapped;
  exported->array = shareable ? array : array.clone();
  std::copy(array.shape().begin(), array.shape().end(), exported->shape);
  DLTensor& tensor = exported->tensor.dl_tensor;
  tensor.data = exported->array.data();
  tensor.device = {array.memory() == Memory::device   ? kDLCUDA
                   : array.memory() == Memory::pinned ? kDLCUDAHost
                                                      : kDLCPU,
                   0};
  tensor.ndim = array.shape().rank();
  tensor.dtype = dlpack_type(array.dtype());
  tensor.shape = exported->shape;
  tensor.strides = nullptr;  // dense and row-major
  tensor.byte_offset = 0;
  exported->tensor.manager_ctx = exported.get();
  exported->tensor.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  };
  return &exported.release()->tensor;
}

}  // namespace millrace
