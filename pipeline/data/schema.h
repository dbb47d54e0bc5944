// What a sample is made of: named fields with a type and a shape, -1 where an extent varies.
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
  bool text = false;  // UTF-8 bytes; Batch::texts() shows them as strings
  // For fields of variable shape: the most elements a sample can have, 0 if unknown. The loader
  // counts it into the memory it predicts.
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
  // Throws if a name is empty or stands twice.
  explicit Schema(std::vector<Field> fields);

  int size() const { return static_cast<int>(fields_.size()); }
  const Field& operator[](int index) const { return fields_[static_cast<std::size_t>(index)]; }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

  // The field's place, or -1.
  int find(std::string_view name) const;
  // The field's place; throws an Error that lists the fields there are.
  int at(std::string_view name) const;

 private:
  std::vector<Field> fields_;
};

// The bytes of one sample, or -1 where they vary.
std::int64_t row_bytes(const Schema& schema);
// "video uint8 [17, 128, 128, 3], caption text"
std::string to_string(const Schema& schema);

}  // namespace millrace
