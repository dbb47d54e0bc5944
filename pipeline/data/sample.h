// One sample while it is made: named fields, each with the place where its elements go. For a
// field of fixed shape that place is the sample's row of the batch itself, so a decoder that fills
// it has nothing left to copy. Fields of variable shape get memory that is reused from sample to
// sample.
//
//   Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
//     std::ranges::fill(sample.out("image").as<std::uint8_t>(), 7);
//     auto tokens = sample.resize("tokens", {count}).as<std::int32_t>();
//     sample.set_text("caption", captions_[index]);
//     return {};
//   }
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/schema.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

// Counts the bytes that samples of variable shape hold, up to a limit.
struct ByteBudget {
  std::int64_t limit = 0;  // 0: none
  std::atomic<std::int64_t> used{0};
  // Throws an Error of kind usage when the limit is passed.
  void take(std::int64_t bytes);
};

class Sample {
 public:
  // A sample with memory of its own. The schema must outlive it.
  explicit Sample(const Schema& schema);
  // A sample whose fixed fields go nowhere until bind() says where.
  static Sample unbound(const Schema& schema) { return {schema, false}; }

  const Schema& schema() const { return *schema_; }

  // Where the elements of a field of fixed shape go. Do not keep it: it is valid during load().
  const Array& out(std::string_view field);
  // Memory for a field of variable shape; the shape must be one that the schema admits.
  const Array& resize(std::string_view field, const Shape& shape);
  // Takes an array that exists already, e.g. a row of a mapped file, without a copy where the
  // field's shape is variable.
  void set(std::string_view field, const Array& value);
  void set_text(std::string_view field, std::string_view text);
  // The same by the field's place in the schema: no name to look up.
  const Array& out(int field);
  const Array& resize(int field, const Shape& shape);
  void set(int field, const Array& value);

  // What was put in. Throws if nothing was.
  const Array& operator[](std::string_view field) const;
  std::string_view text(std::string_view field) const;

  // For the loader: where a fixed field goes from now on, starting a sample anew, and the first
  // field that nobody has filled (-1 if all are).
  void bind(int field, Array destination);
  void restart();
  int first_unfilled() const;
  const Array& value(int field) const { return cells_[static_cast<std::size_t>(field)].value; }
  void set_budget(ByteBudget* budget) { budget_ = budget; }

 private:
  Sample(const Schema& schema, bool with_memory);

  struct Cell {
    Array value;     // fixed shape: the destination; variable shape: a view of scratch, or given
    Buffer scratch;  // reused for variable shapes
    bool filled = false;
  };
  Cell& cell(int field) { return cells_[static_cast<std::size_t>(field)]; }
  const Schema* schema_;
  std::vector<Cell> cells_;
  ByteBudget* budget_ = nullptr;
};

}  // namespace millrace
