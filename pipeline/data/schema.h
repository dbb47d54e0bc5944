// The fields of a sample: names, types and shapes, with -1 for an extent that varies.
//
//   Schema schema{{.name = "video", .dtype = DType::uint8, .shape = {17, 128, 128, 3}},
//                 {.name = "tokens", .dtype = DType::int32, .shape = {-1}},
//                 text_field("caption")};
#pragma once

#include <millrace/pipeline/data/dtype.h>
#include <millrace/pipeline/data/shape.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct Field {
  std::string name;
  DType dtype = DType::uint8;
  Shape shape{};
  bool text = false;  // UTF-8 bytes; Batch::texts() returns them as strings
  // For a field of variable shape: the largest number of elements of a sample, 0 if unknown. The
  // loader predicts its memory with it.
  std::int64_t max_elements = 0;

  bool is_fixed() const { return shape.is_fixed(); }
};

inline Field text_field(std::string name, std::int64_t max_bytes = 0) {
  return {std::move(name), DType::uint8, {-1}, true, max_bytes};
}

class Schema {
 public:
  Schema() = default;
  Schema(std::initializer_list<Field> fields) : Schema(std::vector<Field>(fields)) {}
  // Throws if a name is empty or used twice.
  explicit Schema(std::vector<Field> fields);

  int size() const { return static_cast<int>(fields_.size()); }
  const Field& operator[](int index) const { return fields_[static_cast<std::size_t>(index)]; }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

  // The index of a field, or -1.
  int find(std::string_view name) const;
  // The index of a field; throws an Error that lists the fields if there is none of that name.
  int at(std::string_view name) const;

 private:
  std::vector<Field> fields_;
};

// The size of one sample in bytes, or -1 if it varies.
std::int64_t row_bytes(const Schema& schema);
// "video uint8 [17, 128, 128, 3], caption text"
std::string to_string(const Schema& schema);

}  // namespace millrace
