#include "npy_header.h"

#include <millrace/pipeline/base/error.h>

#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace millrace::detail {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::size_t longest_header = 65536;

constexpr std::pair<DType, std::string_view> descriptions[] = {
    {DType::boolean, "|b1"}, {DType::uint8, "|u1"},   {DType::int8, "|i1"},
    {DType::uint16, "<u2"},  {DType::int16, "<i2"},   {DType::uint32, "<u4"},
    {DType::int32, "<i4"},   {DType::uint64, "<u8"},  {DType::int64, "<i8"},
    {DType::float16, "<f2"}, {DType::float32, "<f4"}, {DType::float64, "<f8"}};

std::string_view description_of(DType dtype) {
  if (dtype == DType::bfloat16) return "<u2";
  for (const auto& [type, text] : descriptions) {
    if (type == dtype) return text;
  }
  throw Error("no .npy type for " + std::string(name_of(dtype)));
}

DType dtype_of_description(std::string_view text) {
  for (const auto& [type, known] : descriptions) {
    if (text == known) return type;
  }
  std::string shown(text);
  if (text.starts_with('>') && text.size() > 1 && text[1] != 'V') {
    throw Error("the elements are big-endian ('" + shown + "')")
        .hint("Convert it: a = numpy.load(f); numpy.save(f, a.astype(a.dtype.newbyteorder('<')))");
  }
  if (text.starts_with("|O")) {
    throw Error("the elements are Python objects")
        .hint("Save an array of numbers; objects are pickled, and are not read here");
  }
  throw Error("the elements are of a type that Millrace does not have ('" + shown + "')");
}

// Parses the dictionary of a header: strings, booleans and a tuple of integers.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : rest_(text) {}

  NpyHeader read() {
    expect('{');
    while (!take('}')) {
      std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr_) {
        descr_ = description();
      } else if (key == "fortran_order" && !fortran_) {
        fortran_ = boolean();
      } else if (key == "shape" && !shape_) {
        shape_ = tuple();
      } else {
        bad();
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty() || !descr_ || !fortran_ || !shape_) bad();
    if (*fortran_ && shape_->rank() > 1) {
      throw Error("the array is in Fortran order, so that a row is not in one piece")
          .hint("Convert it: numpy.save(f, numpy.ascontiguousarray(numpy.load(f)))");
    }
    return {.dtype = dtype_of_description(*descr_), .shape = *shape_, .bytes = 0};
  }

 private:
  [[noreturn]] static void bad() { throw Error("the .npy header is damaged"); }
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) bad();
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string_view string() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) bad();
    std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) bad();
    std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string_view description() {
    skip_space();
    if (rest_.starts_with('[')) {
      throw Error("the elements have named parts (a structured type), and no single type");
    }
    return string();
  }
  bool boolean() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    bad();
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!take(')')) {
      shape.push_back(number());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  std::int64_t number() {
    skip_space();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[digits]));
         ++digits) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, rest_[digits] - '0', &value)) {
        throw Error("the .npy header tells of more elements than there can be");
      }
    }
    if (digits == 0) bad();
    rest_.remove_prefix(digits);
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // written by Python 2
    return value;
  }

  std::string_view rest_;
  std::optional<std::string_view> descr_;
  std::optional<bool> fortran_;
  std::optional<Shape> shape_;
};

NpyHeader read_header(std::span<const std::byte> file) {
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic) || file.size() < 10) {
    throw Error("not a .npy file (it does not begin with \\x93NUMPY)");
  }
  int major = static_cast<unsigned char>(text[6]), minor = static_cast<unsigned char>(text[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw Error("version " + std::to_string(major) + "." + std::to_string(minor) +
                " of .npy is not known");
  }
  std::size_t prefix = major == 1 ? 10 : 12, length = 0;
  if (file.size() < prefix) throw Error("the .npy header is cut off");
  for (std::size_t i = prefix; i-- > 8;) {
    length = length << 8 | static_cast<unsigned char>(text[i]);
  }
  if (length > longest_header) throw Error("the .npy header is impossibly long");
  if (length > file.size() - prefix) throw Error("the .npy header is cut off");
  NpyHeader header = HeaderText(text.substr(prefix, length)).read();
  header.bytes = prefix + length;
  if (header.shape.rank() == 0) throw Error("the array is a single value and has no rows");
  std::uint64_t needed = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(header.shape.elements()),
                             item_size(header.dtype), &needed) ||
      needed != file.size() - header.bytes) {
    throw Error(std::string(name_of(header.dtype)) + " " + to_string(header.shape) + " does not " +
                "fill the file: it has " + std::to_string(file.size() - header.bytes) +
                " bytes after the header");
  }
  return header;
}

}  // namespace

std::string make_npy_header(DType dtype, const Shape& shape) {
  std::string text = "{'descr': '";
  text.append(description_of(dtype)).append("', 'fortran_order': False, 'shape': (");
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text.append(std::to_string(shape[axis])).append(axis + 1 < shape.rank() ? ", " : "");
  }
  text += shape.rank() == 1 ? ",), }" : "), }";
  constexpr std::size_t prefix = 10, alignment = 64;
  std::size_t total = (prefix + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.append(total - prefix - text.size() - 1, ' ').append("\n");
  std::string header(magic);
  header += {'\1', '\0', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

NpyHeader read_npy_header(std::span<const std::byte> file, const std::filesystem::path& path) {
  try {
    return read_header(file);
  } catch (Error& error) {
    throw error.at(path.string());
  }
}

}  // namespace millrace::detail
