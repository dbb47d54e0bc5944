// A tensor of a checkpoint, without LibTorch: element type, sizes, strides and offset over a
// storage. Several tensors can share one storage; a checkpoint keeps that.
//
//   millrace::StoredTensor ones = millrace::StoredTensor::row_major(
//       millrace::ElementType::uint8, {2, 3});
//   std::memset(ones.storage.data(), 1, ones.storage.size());
//
// training/checkpoint/tensors.h converts from and to torch::Tensor without a copy.
#pragma once

#include <millrace/training/checkpoint/element_type.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

// A handle: copies share the bytes. The bytes are not constant, as those of a tensor are not.
class TensorStorage {
 public:
  TensorStorage() = default;
  // Uninitialised and aligned to 64 bytes, as LibTorch's are. Throws std::bad_alloc.
  static TensorStorage allocate(std::size_t bytes);
  // Uses memory of somebody else's. `owner` keeps it alive.
  static TensorStorage borrow(void* data, std::size_t bytes, std::shared_ptr<const void> owner);

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

struct StoredTensor {
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  // in elements, one for each size
  std::int64_t offset = 0;              // of the first element, in elements
  TensorStorage storage{};
  // PyTorch's lazy views: the values are the conjugates, or the negatives, of what is stored.
  bool conjugated = false;
  bool negated = false;

  // Row-major over a storage of its own, uninitialised. Throws an Error if the sizes are negative
  // or come to more than 2^63 bytes, std::bad_alloc if there is no memory.
  static StoredTensor row_major(ElementType type, std::vector<std::int64_t> sizes);
  std::int64_t elements() const;
};

namespace detail {

// Says why a tensor does not fit into its storage; nothing if it does.
std::optional<std::string> shape_error(const StoredTensor& tensor);

}  // namespace detail

}  // namespace millrace
