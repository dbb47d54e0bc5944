// A dense, row-major array: a type, a shape and a view of a Buffer, which it keeps alive. Copying
// an Array copies the handle, not the elements.
//
//   Array image = Array::empty(DType::uint8, {256, 256, 3});
//   for (std::uint8_t& value : image.as<std::uint8_t>()) value = 0;
//   DLManagedTensor* exported = to_dlpack(image);  // numpy, torch and jax read it without a copy
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/buffer.h>
#include <millrace/pipeline/data/dtype.h>
#include <millrace/pipeline/data/shape.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

extern "C" {
struct DLManagedTensor;
}

namespace millrace {

class Array {
 public:
  Array() = default;
  // A view of `buffer` that begins at `offset`. Throws if the buffer is too short for the shape.
  Array(DType dtype, const Shape& shape, Buffer buffer, std::size_t offset = 0);

  static Array empty(DType dtype, const Shape& shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * item_size(dtype_); }
  Memory memory() const { return buffer_.memory(); }
  const Buffer& buffer() const { return buffer_; }
  std::byte* data() const { return buffer_.data() + offset_; }

  // The elements. Throws if T is not the array's type, if the memory is on a device, or if it is a
  // view of a file and T is not const.
  template <typename T>
  std::span<T> as() const {
    check_access(dtype_of<T>, std::is_const_v<T>);
    return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(elements())};
  }

  // The i-th slice along the first axis: a view that shares the buffer.
  Array row(std::int64_t index) const;
  // The same elements under another shape.
  Array reshaped(const Shape& shape) const;
  // A copy with its own memory.
  Array clone() const;

 private:
  void check_access(DType wanted, bool reading) const;

  Buffer buffer_;
  std::size_t offset_ = 0;
  Shape shape_{0};
  DType dtype_ = DType::uint8;
};

// "uint8 [256, 256, 3]"
std::string to_string(const Array& array);

// Exports the elements to another framework without a copy; they live until it calls the deleter.
// An array over borrowed memory is copied first, since the export could outlive that memory.
DLManagedTensor* to_dlpack(const Array& array);

}  // namespace millrace
