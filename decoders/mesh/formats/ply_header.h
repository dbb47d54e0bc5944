// Private: the header of a PLY file.
#pragma once

#include <millrace/decoders/mesh/mesh_builder.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

struct PlyProperty {
  enum class Kind { int8, uint8, int16, uint16, int32, uint32, float32, float64 };

  std::string name;
  Kind kind = Kind::float32;
  Kind count_kind = Kind::uint8;  // of a list
  bool list = false;
  std::size_t offset = 0;  // within the element, if no list precedes it
};

struct PlyElement {
  std::string name;
  std::uint64_t count = 0;
  std::vector<PlyProperty> properties;

  // The index of a property, or -1.
  int find(std::string_view wanted, bool list) const {
    auto it = std::find_if(properties.begin(), properties.end(), [&](const PlyProperty& p) {
      return p.name == wanted && p.list == list;
    });
    return it == properties.end() ? -1 : static_cast<int>(it - properties.begin());
  }
};

struct PlyHeader {
  enum class Encoding { ascii, little, big };
  Encoding encoding = Encoding::ascii;
  std::vector<PlyElement> elements;
  std::size_t bytes = 0;  // where the elements begin
};

constexpr std::size_t bytes_of(PlyProperty::Kind kind) {
  constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 8};
  return sizes[static_cast<std::size_t>(kind)];
}

Status read_ply_header(std::string_view bytes, const MeshBuilder& builder, PlyHeader& header);

}  // namespace millrace::detail
