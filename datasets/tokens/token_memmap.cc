#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/tokens/token_memmap.h>
#include <millrace/decoders/text/text.h>
#include <millrace/pipeline/base/error.h>

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

namespace {

// A .npy file, or a raw file with a description beside it, has its own type and shape.
Array open_rows(const std::filesystem::path& path, const Field& raw, std::int64_t rows,
                Access access) {
  if (path.extension() == ".npy") return NpyDataset(path, {.access = access}).rows();
  if (raw.shape.empty()) return RawMemmap(path, {.access = access}).rows();
  return RawMemmap(path, raw, rows, {.access = access}).rows();
}

bool is_integer(DType dtype) {
  return dtype >= DType::uint8 && dtype <= DType::int64;
}

template <typename Use>
auto with_integer(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::uint8:
      return use(std::uint8_t{});
    case DType::int8:
      return use(std::int8_t{});
    case DType::uint16:
      return use(std::uint16_t{});
    case DType::int16:
      return use(std::int16_t{});
    case DType::uint32:
      return use(std::uint32_t{});
    case DType::int32:
      return use(std::int32_t{});
    case DType::uint64:
      return use(std::uint64_t{});
    default:
      return use(std::int64_t{});
  }
}

// False if a token does not fit into the type.
bool convert(const Array& rows, std::int64_t row, const Array& to) {
  std::int64_t count = to.elements();
  return with_integer(rows.dtype(), [&](auto from_type) {
    return with_integer(to.dtype(), [&](auto to_type) {
      const auto* from = reinterpret_cast<const decltype(from_type)*>(rows.data()) + row * count;
      auto* target = reinterpret_cast<decltype(to_type)*>(to.data());
      bool fits = true;
      for (std::int64_t i = 0; i < count; ++i) {
        target[i] = static_cast<decltype(to_type)>(from[i]);
        fits &= std::cmp_equal(target[i], from[i]);
      }
      return fits;
    });
  });
}

}  // namespace

struct TokenMemmap::State {
  std::filesystem::path path;
  Array tokens, digits;
  Schema schema;
  std::optional<MappedFile> text_file;
  std::vector<std::size_t> lines;  // where each line begins, and the end of the file

  void index_lines();
  std::string_view line(std::int64_t index) const;
};

void TokenMemmap::State::index_lines() {
  std::string_view text(reinterpret_cast<const char*>(text_file->bytes().data()),
                        text_file->size());
  if (std::size_t bad = first_invalid_utf8(text); bad != std::string_view::npos) {
    throw Error("not UTF-8 at byte " + std::to_string(bad)).at(text_file->path().string());
  }
  for (std::size_t at = 0; at < text.size();) {
    lines.push_back(at);
    std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  lines.push_back(text.size());
}

std::string_view TokenMemmap::State::line(std::int64_t index) const {
  auto i = static_cast<std::size_t>(index);
  std::string_view text(reinterpret_cast<const char*>(text_file->bytes().data()) + lines[i],
                        lines[i + 1] - lines[i]);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

TokenMemmap::TokenMemmap(const std::filesystem::path& tokens, TokenMemmapOptions options) {
  auto state = std::make_shared<State>();
  state->path = tokens;
  Field raw{.name = "video", .dtype = options.stored, .shape = options.shape};
  state->tokens = open_rows(tokens, raw, options.rows, options.access);
  DType given = options.dtype.value_or(state->tokens.dtype());
  if (!is_integer(state->tokens.dtype()) || !is_integer(given)) {
    throw Error("tokens are integers, not " + std::string(name_of(state->tokens.dtype())))
        .at(tokens.string());
  }
  std::int64_t rows = state->tokens.shape()[0], texts = rows;
  std::vector<Field> fields{
      {.name = "video", .dtype = given, .shape = state->tokens.shape().without_front()}};
  if (!options.texts.empty() && !options.digits.empty()) {
    throw Error("give texts or digits, not both").kind(ErrorKind::usage);
  }
  std::string beside;
  if (!options.texts.empty()) {
    beside = options.texts.string();
    state->text_file.emplace(options.texts);
    state->index_lines();
    texts = std::ssize(state->lines) - 1;
  } else if (!options.digits.empty()) {
    beside = options.digits.string();
    Field digit{.name = "digits", .dtype = DType::uint8, .shape = {options.num_digits}};
    state->digits = open_rows(options.digits, digit, -1, Access::normal);
    texts = state->digits.shape()[0];
    if (state->digits.dtype() != DType::uint8 || state->digits.shape().rank() != 2) {
      throw Error("digits are uint8 [rows, digits], not " + to_string(state->digits)).at(beside);
    }
  }
  if (texts != rows) {
    throw Error("there are " + std::to_string(texts) + " texts, but " + std::to_string(rows) +
                " rows of tokens in " + tokens.string())
        .at(beside);
  }
  if (!beside.empty()) fields.push_back(text_field("text"));
  state->schema = Schema(std::move(fields));
  state_ = std::move(state);
}

std::int64_t TokenMemmap::size() const {
  return state_->tokens.shape()[0];
}
const Schema& TokenMemmap::schema() const {
  return state_->schema;
}
std::string TokenMemmap::describe(std::int64_t index) const {
  return state_->path.string() + ", row " + std::to_string(index);
}

Status TokenMemmap::load(std::int64_t index, const LoadContext&, Sample& sample) const {
  const State& s = *state_;
  if (index < 0 || index >= size()) {
    return Error("there is no row " + std::to_string(index)).kind(ErrorKind::usage);
  }
  const Array& to = sample.out(0);
  if (to.dtype() == s.tokens.dtype()) {
    auto offset = static_cast<std::size_t>(index) * to.bytes();
    if (to.bytes() > 0) std::memcpy(to.data(), s.tokens.data() + offset, to.bytes());
  } else if (!convert(s.tokens, index, to)) {
    return Error("a token does not fit into " + std::string(name_of(to.dtype())));
  }
  if (s.text_file) {
    sample.set_text("text", s.line(index));
  } else if (s.schema.size() > 1) {
    std::string text;
    Array digits = s.digits.row(index);
    for (std::uint8_t digit : digits.as<const std::uint8_t>()) {
      text.append(text.empty() ? "" : " ").append(std::to_string(digit));
    }
    sample.set_text("text", text);
  }
  return {};
}

}  // namespace millrace
