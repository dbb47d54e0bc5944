// Stanford PLY: a text header that lists elements and their properties, then the elements as text
// or binary. Vertices, faces and triangle strips are read; other elements and properties are
// skipped.
#include <millrace/decoders/byte_order.h>
#include <millrace/decoders/mesh/formats/ply_header.h>
#include <millrace/decoders/mesh/formats/text_cursor.h>
#include <millrace/decoders/mesh/mesh_builder.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

namespace {

using Kind = PlyProperty::Kind;

// The two sources of values, text and binary. Both return false at the end of the data.
class TextValues {
 public:
  static constexpr bool binary = false;
  explicit TextValues(std::string_view body) : in_(body) {}
  bool value(Kind, double& value) {
    in_.skip_spaces();
    return in_.number(value);
  }
  // Each item has a line. Some files have more values on it than the header declares.
  void end_item() { in_.skip_line(); }
  std::size_t left() const { return in_.left(); }
  // At least a digit and a space per value; the last value may lack the space.
  static std::size_t least_bytes(Kind) { return 2; }
  static constexpr std::size_t slack = 1;

 private:
  TextCursor in_;
};

template <bool big>
class BinaryValues {
 public:
  static constexpr bool binary = true;
  explicit BinaryValues(std::string_view body) : at_(body.data()), left_(body.size()) {}
  bool value(Kind kind, double& value) {
    std::size_t bytes = bytes_of(kind);
    if (bytes > left_) return false;
    value = load_kind(at_, kind);
    skip(bytes);
    return true;
  }
  void end_item() {}
  std::size_t left() const { return left_; }
  static std::size_t least_bytes(Kind kind) { return bytes_of(kind); }
  static constexpr std::size_t slack = 0;

  const char* at() const { return at_; }
  void skip(std::size_t bytes) {
    at_ += bytes;
    left_ -= bytes;
  }
  template <typename T>
  static T load(const char* bytes) {
    return big ? load_big<T>(bytes) : load_little<T>(bytes);
  }

 private:
  static double load_kind(const char* bytes, Kind kind) {
    switch (kind) {
      case Kind::int8:
        return load<std::int8_t>(bytes);
      case Kind::uint8:
        return load<std::uint8_t>(bytes);
      case Kind::int16:
        return load<std::int16_t>(bytes);
      case Kind::uint16:
        return load<std::uint16_t>(bytes);
      case Kind::int32:
        return load<std::int32_t>(bytes);
      case Kind::uint32:
        return load<std::uint32_t>(bytes);
      case Kind::float32:
        return static_cast<double>(load<float>(bytes));
      case Kind::float64:
        return load<double>(bytes);
    }
    return 0;
  }

  const char* at_;
  std::size_t left_;
};

template <typename Values>
class PlyReader {
 public:
  PlyReader(Values values, MeshBuilder& builder) : values_(values), builder_(builder) {}

  Status read(const PlyHeader& header) {
    for (const PlyElement& element : header.elements) {
      if (element.count == 0) continue;
      if (Status status = check_size(element); !status.ok()) return status;
      Status status = element.name == "vertex"                                ? vertices(element)
                      : element.name == "face" || element.name == "tristrips" ? faces(element)
                                                                              : others(element);
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  Status check_size(const PlyElement& element) {
    if (element.name == "vertex") {
      if (Status status = builder_.expect_vertices(element.count, 0, 0); !status.ok()) {
        return status;
      }
    } else if (element.name == "face") {
      if (Status status = builder_.expect_faces(element.count, 0, 0); !status.ok()) {
        return status;
      }
    }
    stride_ = 0;
    for (const PlyProperty& property : element.properties) {
      stride_ += Values::least_bytes(property.list ? property.count_kind : property.kind);
    }
    if (stride_ == 0) return builder_.error("element " + element.name + " has no properties");
    if (element.count > (values_.left() + Values::slack) / stride_) {
      return builder_.error("truncated: its header promises " + std::to_string(element.count) +
                            " of element " + element.name + ", but only " +
                            std::to_string(values_.left()) + " bytes are left");
    }
    return {};
  }

  Status bad_item(const PlyElement& element, std::uint64_t item) const {
    return builder_.error((values_.left() == 0 ? "truncated: ends within " : "cannot read ") +
                          element.name + " " + std::to_string(item));
  }

  Status vertices(const PlyElement& element) {
    int places[3] = {element.find("x", false), element.find("y", false), element.find("z", false)};
    for (int place : places) {
      if (place < 0) return builder_.error("its vertices have no x, y and z");
    }
    builder_.reserve_vertices(element.count);
    if (packed_vertices(element, places)) return {};
    for (std::uint64_t i = 0; i < element.count; ++i) {
      if (!read_item(element, -1)) return bad_item(element, i);
      auto coordinate = [&](int k) { return scalars_[static_cast<std::size_t>(places[k])]; };
      if (!builder_.add_vertex(coordinate(0), coordinate(1), coordinate(2))) {
        return builder_.too_many();
      }
    }
    return {};
  }

  Status faces(const PlyElement& element) {
    int list = element.find("vertex_indices", true);
    if (list < 0) list = element.find("vertex_index", true);
    if (list < 0) return builder_.error("its faces have no list vertex_indices");
    bool strips = element.name == "tristrips";
    if (!strips) builder_.reserve_faces(element.count);
    for (std::uint64_t i = 0; i < element.count; ++i) {
      if (!strips) i += packed_triangles(element, element.count - i);
      if (i == element.count) break;
      if (!read_item(element, list)) return bad_item(element, i);
      bool room = true;
      if (strips) {
        room = add_strips();
      } else if (indices_.size() >= 3) {
        room = builder_.add_polygon(indices_);
      } else {
        builder_.skip_element();
      }
      if (!room) return builder_.too_many();
    }
    return {};
  }

  Status others(const PlyElement& element) {
    for (std::uint64_t i = 0; i < element.count; ++i) {
      if (!read_item(element, -1)) return bad_item(element, i);
    }
    return {};
  }

  // Reads the values of one item into scalars_, and its list number `list` into indices_.
  bool read_item(const PlyElement& element, int list) {
    scalars_.resize(element.properties.size());
    indices_.clear();
    for (std::size_t p = 0; p < element.properties.size(); ++p) {
      const PlyProperty& property = element.properties[p];
      bool good = property.list ? read_list(property, static_cast<int>(p) == list)
                                : values_.value(property.kind, scalars_[p]);
      if (!good) return false;
    }
    values_.end_item();
    return true;
  }

  bool read_list(const PlyProperty& property, bool keep) {
    double count = 0;
    if (!values_.value(property.count_kind, count)) return false;
    std::size_t room = (values_.left() + Values::slack) / Values::least_bytes(property.kind);
    if (!(count >= 0 && count <= static_cast<double>(room))) return false;
    for (auto k = static_cast<std::uint64_t>(count); k > 0; --k) {
      double value = 0;
      if (!values_.value(property.kind, value)) return false;
      // A value that is not an integer becomes an index out of range.
      bool whole = std::abs(value) < 9e15 && value == std::floor(value);
      if (keep) indices_.push_back(whole ? static_cast<std::int64_t>(value) : -2);
    }
    return true;
  }

  // Strips are separated by -1; every second triangle has the opposite orientation.
  bool add_strips() {
    std::size_t start = 0;
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i] == -1) {
        start = i + 1;
      } else if (i >= start + 2) {
        bool turned = (i - start) % 2 == 1;
        std::int64_t a = indices_[i - 2], b = indices_[i - 1];
        if (!builder_.add_triangle(turned ? b : a, turned ? a : b, indices_[i])) return false;
      }
    }
    return true;
  }

  // Fast path: binary vertices without lists have a constant stride, mostly with float coordinates.
  bool packed_vertices(const PlyElement& element, const int (&places)[3]) {
    if constexpr (Values::binary) {
      std::size_t offsets[3] = {};
      for (int k = 0; k < 3; ++k) {
        const PlyProperty& property = element.properties[static_cast<std::size_t>(places[k])];
        if (property.kind != Kind::float32) return false;
        offsets[k] = property.offset;
      }
      for (const PlyProperty& property : element.properties) {
        if (property.list) return false;
      }
      auto& vertices = builder_.mesh().vertices;
      std::size_t first = vertices.size();
      vertices.resize(first + element.count);
      const char* at = values_.at();
      for (std::size_t i = first; i < vertices.size(); ++i, at += stride_) {
        for (std::size_t k = 0; k < 3; ++k) {
          vertices[i][k] = Values::template load<float>(at + offsets[k]);
        }
      }
      values_.skip(element.count * stride_);
      return true;
    } else {
      return false;
    }
  }

  // Fast path: reads faces of the usual binary form (the byte 3 and three 32-bit indices) and
  // returns their number.
  std::uint64_t packed_triangles(const PlyElement& element, std::uint64_t most) {
    std::uint64_t taken = 0;
    if constexpr (Values::binary) {
      const PlyProperty& list = element.properties[0];
      if (element.properties.size() != 1 || bytes_of(list.count_kind) != 1) return 0;
      if (list.kind != Kind::int32 && list.kind != Kind::uint32) return 0;
      constexpr std::size_t bytes = 13;
      for (; taken < most && values_.left() >= bytes && *values_.at() == 3; ++taken) {
        std::array<std::int64_t, 3> face{};
        for (std::size_t k = 0; k < 3; ++k) {
          auto index = Values::template load<std::int32_t>(values_.at() + 1 + 4 * k);
          face[k] = list.kind == Kind::int32 ? index : static_cast<std::uint32_t>(index);
        }
        if (!builder_.add_triangle(face[0], face[1], face[2])) break;
        values_.skip(bytes);
      }
    }
    return taken;
  }

  Values values_;
  MeshBuilder& builder_;
  std::size_t stride_ = 0;  // minimum size of an item; exact if there are no lists
  std::vector<double> scalars_;
  std::vector<std::int64_t> indices_;
};

template <typename Values>
Status read_body(std::string_view body, const PlyHeader& header, MeshBuilder& builder) {
  return PlyReader<Values>(Values(body), builder).read(header);
}

}  // namespace

Status read_ply(std::string_view bytes, MeshBuilder& builder) {
  PlyHeader header;
  if (Status status = read_ply_header(bytes, builder, header); !status.ok()) return status;
  std::string_view body = bytes.substr(header.bytes);
  switch (header.encoding) {
    case PlyHeader::Encoding::ascii:
      return read_body<TextValues>(body, header, builder);
    case PlyHeader::Encoding::little:
      return read_body<BinaryValues<false>>(body, header, builder);
    case PlyHeader::Encoding::big:
      return read_body<BinaryValues<true>>(body, header, builder);
  }
  return {};
}

}  // namespace millrace::detail
