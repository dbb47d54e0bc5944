// How the samples of a batch become one array. Fields of fixed shape are decoded into place and
// need no policy; a field of variable shape is a list of arrays unless one of these is asked for.
//
//   Loader loader(meshes, {.collate = {{"faces", Collate::pad(-1)},
//                                      {"wave", Collate::curtail_to_shortest(0)}}});
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/schema.h>

#include <cstdint>
#include <span>

namespace millrace {

struct Collate {
  enum class Kind { stack, pad, curtail, list };

  // All samples must have one shape.
  static Collate stack() { return {.kind = Kind::stack}; }
  // Every variable axis is padded to the longest in the batch.
  static Collate pad(double value = 0) { return {.kind = Kind::pad, .value = value}; }
  // Padded to `shape`; a sample that is larger along any axis is an error.
  static Collate pad_to(const Shape& shape, double value = 0) {
    return {.kind = Kind::pad, .value = value, .shape = shape};
  }
  // One axis is padded to the longest in the batch; the others must agree.
  static Collate pad_to_longest(int axis = 0, double value = 0) {
    return {.kind = Kind::pad, .value = value, .axis = axis};
  }
  // One axis is cut to the shortest in the batch; the others must agree.
  static Collate curtail_to_shortest(int axis = 0) { return {.kind = Kind::curtail, .axis = axis}; }
  // Arrays as they are: Batch::list() and Batch::texts().
  static Collate list() { return {.kind = Kind::list}; }

  Kind kind = Kind::list;
  double value = 0;
  int axis = -1;  // -1: every axis
  Shape shape{};
};

// The shape of the batch, [rows, ...]. Throws an Error that names the shapes that do not agree.
Shape collated_shape(const Field& field, const Collate& policy, std::span<const Array> rows);
// Copies the samples into `out`, which has that shape, and writes the padding.
void collate_into(const Collate& policy, std::span<const Array> rows, const Array& out);
// How much of each row is data: int64 [rows], or [rows, axes] where more than one axis varies.
Array collated_lengths(const Field& field, std::span<const Array> rows, const Shape& out);

}  // namespace millrace
