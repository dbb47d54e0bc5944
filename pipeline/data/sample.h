// One sample while Dataset::load() fills it: named fields, each with the memory for its elements.
// For a field of fixed shape that memory is the sample's row of the batch, so a decoder writes into
// the batch and nothing is copied. Memory of fields of variable shape is reused for later samples.
//
//   Schema schema{{.name = "image", .dtype = DType::uint8, .shape = {8, 8, 3}},
//                 {.name = "tokens", .dtype = DType::int32, .shape = {-1}},
//                 text_field("caption")};
//   Sample sample(schema);
//   sample.out("image").as<std::uint8_t>()[0] = 7;
//   sample.resize("tokens", {5}).as<std::int32_t>()[0] = 1;
//   sample.set_text("caption", "a picture");
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/schema.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

// Counts the memory of samples of variable shape. Thread-safe.
struct ByteBudget {
  std::int64_t limit = 0;  // in bytes; 0: no limit
  std::atomic<std::int64_t> used{0};
  // Throws an Error of kind usage when the limit is passed.
  void take(std::int64_t bytes);
};

class Sample {
 public:
  // A sample with its own memory. The schema must outlive it.
  explicit Sample(const Schema& schema);
  // A sample whose fields of fixed shape have no memory until bind() is called.
  static Sample unbound(const Schema& schema) { return {schema, false}; }

  const Schema& schema() const { return *schema_; }

  // The memory of a field of fixed shape, to be filled. Valid only during load().
  const Array& out(std::string_view field);
  // Memory for a field of variable shape; the shape must be one that the schema admits.
  const Array& resize(std::string_view field, const Shape& shape);
  // Sets a field to an existing array, e.g. a row of a mapped file. Copies the elements only if the
  // field has a fixed shape.
  void set(std::string_view field, const Array& value);
  void set_text(std::string_view field, std::string_view text);
  // The same by the field's index in the schema, without looking up a name.
  const Array& out(int field);
  const Array& resize(int field, const Shape& shape);
  void set(int field, const Array& value);

  // The content of a field. Throws if it was not filled.
  const Array& operator[](std::string_view field) const;
  std::string_view text(std::string_view field) const;

  // For the loader. bind() sets the memory of a field of fixed shape, restart() begins a new
  // sample, first_unfilled() returns the first field that was not filled, or -1.
  void bind(int field, Array destination);
  void restart();
  int first_unfilled() const;
  const Array& value(int field) const { return cells_[static_cast<std::size_t>(field)].value; }
  void set_budget(ByteBudget* budget) { budget_ = budget; }

 private:
  Sample(const Schema& schema, bool with_memory);

  struct Cell {
    Array value;     // fixed shape: bound memory; variable shape: a view of scratch, or set()
    Buffer scratch;  // reused for variable shapes
    bool filled = false;
  };
  Cell& cell(int field) { return cells_[static_cast<std::size_t>(field)]; }
  const Schema* schema_;
  std::vector<Cell> cells_;
  ByteBudget* budget_ = nullptr;
};

}  // namespace millrace
