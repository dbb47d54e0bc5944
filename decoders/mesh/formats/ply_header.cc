#include <millrace/decoders/mesh/formats/ply_header.h>
#include <millrace/decoders/mesh/formats/text_cursor.h>

#include <array>
#include <utility>

namespace millrace::detail {

namespace {

using Kind = PlyProperty::Kind;

// More than any real file has; with millions of properties, reading each item would take long.
constexpr std::size_t most_elements = 64, most_properties = 256;

bool parse_kind(std::string_view word, Kind& kind) {
  static constexpr std::array<std::pair<std::string_view, Kind>, 16> names{{
      {"char", Kind::int8},
      {"int8", Kind::int8},
      {"uchar", Kind::uint8},
      {"uint8", Kind::uint8},
      {"short", Kind::int16},
      {"int16", Kind::int16},
      {"ushort", Kind::uint16},
      {"uint16", Kind::uint16},
      {"int", Kind::int32},
      {"int32", Kind::int32},
      {"uint", Kind::uint32},
      {"uint32", Kind::uint32},
      {"float", Kind::float32},
      {"float32", Kind::float32},
      {"double", Kind::float64},
      {"float64", Kind::float64},
  }};
  for (const auto& [name, value] : names) {
    if (word == name) return kind = value, true;
  }
  return false;
}

class HeaderReader {
 public:
  HeaderReader(std::string_view bytes, const MeshBuilder& builder, PlyHeader& header)
      : in_(bytes), builder_(builder), header_(header) {}

  Status read() {
    in_.skip_line();  // "ply", which the caller has checked
    bool has_format = false;
    for (; !in_.done(); in_.skip_line()) {
      // Any other line is a comment, with or without the keyword.
      std::string_view word = in_.word();
      Status status;
      if (word == "end_header") {
        in_.skip_line();
        header_.bytes = in_.offset();
        return has_format ? Status() : bad("no format line");
      }
      if (word == "format") {
        has_format = true;
        status = format();
      } else if (word == "element") {
        status = element();
      } else if (word == "property") {
        status = property();
      }
      if (!status.ok()) return status;
    }
    return builder_.error("truncated: its header has no end");
  }

 private:
  Status bad(const std::string& reason) const {
    return builder_.error("header line " + std::to_string(in_.line_number()) + ": " + reason);
  }

  Status format() {
    std::string_view word = in_.word();
    using Encoding = PlyHeader::Encoding;
    if (word == "ascii") {
      header_.encoding = Encoding::ascii;
    } else if (word == "binary_little_endian") {
      header_.encoding = Encoding::little;
    } else if (word == "binary_big_endian") {
      header_.encoding = Encoding::big;
    } else {
      return bad("a format that PLY does not know");
    }
    return {};
  }

  Status element() {
    PlyElement element;
    element.name = in_.word();
    std::int64_t count = 0;
    if (!in_.integer(count) || count < 0) return bad("an element needs a count");
    if (header_.elements.size() >= most_elements) return bad("too many elements");
    element.count = static_cast<std::uint64_t>(count);
    header_.elements.push_back(std::move(element));
    return {};
  }

  Status property() {
    if (header_.elements.empty()) return bad("a property before any element");
    PlyElement& element = header_.elements.back();
    if (element.properties.size() >= most_properties) return bad("too many properties");
    PlyProperty property;
    std::string_view word = in_.word();
    property.list = word == "list";
    if (property.list) {
      if (!parse_kind(in_.word(), property.count_kind)) return bad("a type that PLY does not know");
      word = in_.word();
    }
    if (!parse_kind(word, property.kind)) return bad("a type that PLY does not know");
    property.name = in_.word();
    if (!element.properties.empty()) {
      const PlyProperty& before = element.properties.back();
      property.offset = before.offset + bytes_of(before.kind);
    }
    element.properties.push_back(std::move(property));
    return {};
  }

  TextCursor in_;
  const MeshBuilder& builder_;
  PlyHeader& header_;
};

}  // namespace

Status read_ply_header(std::string_view bytes, const MeshBuilder& builder, PlyHeader& header) {
  return HeaderReader(bytes, builder, header).read();
}

}  // namespace millrace::detail
