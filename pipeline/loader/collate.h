// How samples of variable shape become one array of the batch. Fields of fixed shape are always
// stacked; a field of variable shape is a list of arrays unless LoaderOptions::collate says
// otherwise.
//
//   std::map<std::string, Collate> collate{{"faces", Collate::pad(-1)},
//                                          {"wave", Collate::curtail_to_shortest(0)}};
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/schema.h>

#include <cstdint>
#include <span>

namespace millrace {

struct Collate {
  enum class Kind { stack, pad, curtail, list };

  // All samples must have the same shape.
  static Collate stack() { return {.kind = Kind::stack}; }
  // Pads every variable axis to the longest sample of the batch.
  static Collate pad(double value = 0) { return {.kind = Kind::pad, .value = value}; }
  // Pads to `shape`; a sample that is larger along any axis is an error.
  static Collate pad_to(const Shape& shape, double value = 0) {
    return {.kind = Kind::pad, .value = value, .shape = shape};
  }
  // Pads one axis to the longest sample of the batch; the other axes must agree.
  static Collate pad_to_longest(int axis = 0, double value = 0) {
    return {.kind = Kind::pad, .value = value, .axis = axis};
  }
  // Cuts one axis to the shortest sample of the batch; the other axes must agree.
  static Collate curtail_to_shortest(int axis = 0) { return {.kind = Kind::curtail, .axis = axis}; }
  // Keeps one array per sample: Batch::list() and Batch::texts().
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
// The length of each row without padding: int64 [rows], or [rows, axes] if several axes vary.
Array collated_lengths(const Field& field, std::span<const Array> rows, const Shape& out);

}  // namespace millrace
