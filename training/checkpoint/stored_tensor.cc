#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/stored_tensor.h>

#include <limits>
#include <new>

namespace millrace {

namespace {

constexpr std::align_val_t storage_alignment{64};

}  // namespace

TensorStorage TensorStorage::allocate(std::size_t bytes) {
  // Never nothing: an empty storage has an identity too.
  void* memory = ::operator new(bytes > 0 ? bytes : 1, storage_alignment);
  std::shared_ptr<const void> owner(
      memory, [memory](const void*) { ::operator delete(memory, storage_alignment); });
  return borrow(memory, bytes, std::move(owner));
}

TensorStorage TensorStorage::borrow(void* data, std::size_t bytes,
                                    std::shared_ptr<const void> owner) {
  TensorStorage storage;
  storage.owner_ = std::move(owner);
  storage.data_ = static_cast<std::byte*>(data);
  storage.size_ = bytes;
  return storage;
}

StoredTensor StoredTensor::row_major(ElementType type, std::vector<std::int64_t> sizes) {
  StoredTensor tensor{.type = type, .sizes = std::move(sizes)};
  tensor.strides.resize(tensor.sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = tensor.sizes.size(); i > 0; --i) {
    const std::int64_t size = tensor.sizes[i - 1];
    tensor.strides[i - 1] = stride;
    // An empty side counts as one, as in PyTorch's strides.
    if (size < 0 || __builtin_mul_overflow(stride, size > 0 ? size : 1, &stride)) {
      throw Error("a tensor of this shape cannot be made");
    }
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor.elements(), static_cast<std::int64_t>(size_of(type)), &bytes)) {
    throw Error("a tensor of this shape cannot be made");
  }
  tensor.storage = TensorStorage::allocate(static_cast<std::size_t>(bytes));
  return tensor;
}

std::int64_t StoredTensor::elements() const {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return count;
}

std::optional<std::string> detail::shape_error(const StoredTensor& tensor) {
  if (tensor.sizes.size() != tensor.strides.size() || tensor.offset < 0) {
    return "has a tensor without a proper shape";
  }
  // Computes the last element that the view reaches, and the number of elements.
  std::int64_t last = tensor.offset, count = 1;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const std::int64_t size = tensor.sizes[i], stride = tensor.strides[i];
    if (size < 0 || stride < 0) return "has a tensor without a proper shape";
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(count, size, &count) ||
        (size > 0 && __builtin_mul_overflow(size - 1, stride, &reach)) ||
        __builtin_add_overflow(last, reach, &last)) {
      return "has a tensor whose shape overflows";
    }
  }
  const auto held = static_cast<std::int64_t>(tensor.storage.size() / size_of(tensor.type));
  if (count > 0 ? last >= held : tensor.offset > held) {
    return "has a tensor that reaches to element " + std::to_string(last) + " of a storage of " +
           std::to_string(held);
  }
  return std::nullopt;
}

}  // namespace millrace
