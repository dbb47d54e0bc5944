#include <millrace/pipeline/loader/collate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace millrace {

namespace {

std::uint16_t bfloat16_bits(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// Rounds to nearest even. A value too small for a normal half becomes zero, one too large infinity.
std::uint16_t float16_bits(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  int exponent = static_cast<int>((bits >> 23) & 0xFF) - 127 + 15;
  if (std::isnan(value)) return sign | 0x7E00;
  if (exponent <= 0) return sign;
  if (exponent >= 31) return sign | 0x7C00;
  std::uint32_t mantissa = bits & 0x7FFFFF;
  std::uint32_t half = (static_cast<std::uint32_t>(exponent) << 10) | (mantissa >> 13);
  std::uint32_t dropped = mantissa & 0x1FFF;
  if (dropped > 0x1000 || (dropped == 0x1000 && (half & 1))) ++half;
  return static_cast<std::uint16_t>(sign | half);
}

template <typename T>
void fill_as(std::byte* to, std::size_t bytes, T value) {
  auto* elements = reinterpret_cast<T*>(to);
  std::fill(elements, elements + bytes / sizeof(T), value);
}

void fill(DType dtype, std::byte* to, std::size_t bytes, double value) {
  switch (dtype) {
    case DType::boolean:
      return fill_as<std::uint8_t>(to, bytes, value != 0);
    case DType::uint8:
    case DType::int8:
      return fill_as(to, bytes, static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
    case DType::uint16:
    case DType::int16:
      return fill_as(to, bytes, static_cast<std::uint16_t>(static_cast<std::int64_t>(value)));
    case DType::uint32:
    case DType::int32:
      return fill_as(to, bytes, static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
    case DType::uint64:
    case DType::int64:
      return fill_as(to, bytes, static_cast<std::int64_t>(value));
    case DType::float16:
      return fill_as(to, bytes, float16_bits(static_cast<float>(value)));
    case DType::bfloat16:
      return fill_as(to, bytes, bfloat16_bits(static_cast<float>(value)));
    case DType::float32:
      return fill_as(to, bytes, static_cast<float>(value));
    case DType::float64:
      return fill_as(to, bytes, value);
  }
}

// Copies the region common to both shapes, from the first element of each.
void copy_overlap(const std::byte* from, const Shape& from_shape, std::byte* to,
                  const Shape& to_shape, std::size_t item_bytes) {
  // The innermost axes on which the two agree are one contiguous block.
  int axis = from_shape.rank();
  std::size_t block = item_bytes;
  while (axis > 0 && from_shape[axis - 1] == to_shape[axis - 1]) {
    block *= static_cast<std::size_t>(from_shape[--axis]);
  }
  if (axis == 0) {
    if (block > 0) std::memcpy(to, from, block);
    return;
  }
  --axis;  // the innermost axis that differs
  auto from_stride = block * static_cast<std::size_t>(from_shape[axis]);
  auto to_stride = block * static_cast<std::size_t>(to_shape[axis]);
  auto length = block * static_cast<std::size_t>(std::min(from_shape[axis], to_shape[axis]));
  std::int64_t counter[Shape::max_rank] = {};
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= std::min(from_shape[i], to_shape[i]);
  for (std::int64_t n = 0; n < outer && length > 0; ++n) {
    std::size_t from_row = 0, to_row = 0;
    for (int i = 0; i < axis; ++i) {
      from_row =
          from_row * static_cast<std::size_t>(from_shape[i]) + static_cast<std::size_t>(counter[i]);
      to_row =
          to_row * static_cast<std::size_t>(to_shape[i]) + static_cast<std::size_t>(counter[i]);
    }
    std::memcpy(to + to_row * to_stride, from + from_row * from_stride, length);
    for (int i = axis; i-- > 0;) {
      if (++counter[i] < std::min(from_shape[i], to_shape[i])) break;
      counter[i] = 0;
    }
  }
}

[[noreturn]] void disagree(const Field& field, const Shape& a, const Shape& b,
                           const std::string& what) {
  throw Error("field '" + field.name + "': " + what + ", but this batch has " + to_string(a) +
              " and " + to_string(b))
      .stage("collate")
      .kind(ErrorKind::usage)
      .hint("Choose another collation for it: pad, pad_to_longest, curtail_to_shortest or list");
}

}  // namespace

Shape collated_shape(const Field& field, const Collate& policy, std::span<const Array> rows) {
  if (rows.empty()) {  // every sample of the batch was dropped
    Shape none = policy.shape.empty() ? field.shape : policy.shape;
    for (int axis = 0; axis < none.rank(); ++axis)
      none[axis] = std::max<std::int64_t>(none[axis], 0);
    return none.with_front(0);
  }
  Shape extents = rows[0].shape();
  bool all_axes = policy.axis < 0;
  bool shrink = policy.kind == Collate::Kind::curtail;
  for (const Array& row : rows) {
    const Shape& shape = row.shape();
    if (shape.rank() != extents.rank()) disagree(field, extents, shape, "samples need one rank");
    for (int axis = 0; axis < shape.rank(); ++axis) {
      bool may_differ = policy.kind != Collate::Kind::stack && (all_axes || axis == policy.axis);
      if (!may_differ && shape[axis] != extents[axis]) {
        disagree(field, extents, shape,
                 policy.kind == Collate::Kind::stack
                     ? "stack needs samples of one shape"
                     : "only axis " + std::to_string(policy.axis) + " may differ");
      }
      extents[axis] =
          shrink ? std::min(extents[axis], shape[axis]) : std::max(extents[axis], shape[axis]);
    }
  }
  if (!policy.shape.empty()) {
    for (int axis = 0; axis < extents.rank(); ++axis) {
      if (extents[axis] > policy.shape[axis]) {
        disagree(field, extents, policy.shape, "a sample is larger than it is padded to");
      }
    }
    extents = policy.shape;
  }
  return extents.with_front(static_cast<std::int64_t>(rows.size()));
}

void collate_into(const Collate& policy, std::span<const Array> rows, const Array& out) {
  Shape inner = out.shape().without_front();
  std::size_t item_bytes = item_size(out.dtype());
  std::size_t row_bytes = static_cast<std::size_t>(inner.elements()) * item_bytes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::byte* to = out.data() + i * row_bytes;
    bool covers = std::equal(inner.begin(), inner.end(), rows[i].shape().begin(),
                             [](std::int64_t want, std::int64_t have) { return have >= want; });
    if (!covers) fill(out.dtype(), to, row_bytes, policy.value);
    copy_overlap(rows[i].data(), rows[i].shape(), to, inner, item_bytes);
  }
}

Array collated_lengths(const Field& field, std::span<const Array> rows, const Shape& out) {
  std::vector<int> axes;
  for (int axis = 0; axis < field.shape.rank(); ++axis) {
    if (field.shape[axis] < 0) axes.push_back(axis);
  }
  Shape shape{static_cast<std::int64_t>(rows.size())};
  if (axes.size() > 1) shape.push_back(static_cast<std::int64_t>(axes.size()));
  Array lengths = Array::empty(DType::int64, shape);
  std::int64_t* to = lengths.as<std::int64_t>().data();
  for (const Array& row : rows) {
    for (int axis : axes) *to++ = std::min(row.shape()[axis], out[axis + 1]);
  }
  return lengths;
}

}  // namespace millrace
