// The extents of an array, outermost first; -1 in a schema for an extent that varies from sample to
// sample. Stored inline, since shapes are made for every sample and must not allocate.
//
//   Shape video{17, 128, 128, 3};
//   std::int64_t elements = video.elements();
#pragma once

#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace millrace {

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    for (std::int64_t extent : extents) push_back(extent);
  }
  explicit Shape(std::span<const std::int64_t> extents) {
    for (std::int64_t extent : extents) push_back(extent);
  }

  void push_back(std::int64_t extent) {
    if (rank_ == max_rank) throw Error("a shape has at most 8 axes").kind(ErrorKind::usage);
    extents_[rank_++] = extent;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](int axis) const { return extents_[axis]; }
  std::int64_t& operator[](int axis) { return extents_[axis]; }
  const std::int64_t* begin() const { return extents_; }
  const std::int64_t* end() const { return extents_ + rank_; }

  bool is_fixed() const {
    return std::all_of(begin(), end(), [](std::int64_t extent) { return extent >= 0; });
  }
  // The number of elements; 1 for a scalar. Throws if it exceeds 2^63: extents may come from the
  // header of a hostile file.
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t extent : *this) {
      if (__builtin_mul_overflow(count, extent, &count)) throw Error("a shape is too large");
    }
    return count;
  }
  Shape with_front(std::int64_t extent) const {
    Shape result{extent};
    for (std::int64_t inner : *this) result.push_back(inner);
    return result;
  }
  Shape without_front() const { return Shape(std::span(extents_ + 1, rank_ > 0 ? rank_ - 1 : 0)); }

  // True if `actual` has this shape's extents wherever they are fixed.
  bool admits(const Shape& actual) const {
    if (actual.rank_ != rank_) return false;
    for (int axis = 0; axis < rank_; ++axis) {
      if (extents_[axis] >= 0 && extents_[axis] != actual.extents_[axis]) return false;
    }
    return true;
  }
  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::int64_t extents_[max_rank] = {};
  int rank_ = 0;
};

// "[3, 17, -1]"
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

}  // namespace millrace
