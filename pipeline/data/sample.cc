#include <millrace/pipeline/data/sample.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace millrace {

namespace {

[[noreturn]] void refuse(const Field& field, const std::string& problem) {
  throw Error("field '" + field.name + "': " + problem).kind(ErrorKind::usage);
}

void check_shape(const Field& field, const Shape& shape) {
  if (!field.shape.admits(shape)) {
    throw Error("field '" + field.name + "' is " + to_string(field.shape) +
                " in the schema, but the sample has " + to_string(shape));
  }
}

}  // namespace

void ByteBudget::take(std::int64_t bytes) {
  std::int64_t now = used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (limit > 0 && now > limit) {
    throw Error("samples of variable shape need more than the " + std::to_string(limit) +
                " bytes that max_bytes leaves for them")
        .kind(ErrorKind::usage)
        .hint("Raise max_bytes, or lower prefetch or batch_size");
  }
}

Sample::Sample(const Schema& schema) : Sample(schema, true) {}

Sample::Sample(const Schema& schema, bool with_memory)
    : schema_(&schema), cells_(static_cast<std::size_t>(schema.size())) {
  for (int i = 0; with_memory && i < schema.size(); ++i) {
    if (schema[i].is_fixed()) cell(i).value = Array::empty(schema[i].dtype, schema[i].shape);
  }
}

void Sample::bind(int field, Array destination) {
  cell(field).value = std::move(destination);
}

void Sample::restart() {
  for (Cell& cell : cells_) cell.filled = false;
}

int Sample::first_unfilled() const {
  auto empty = std::ranges::find(cells_, false, &Cell::filled);
  return empty == cells_.end() ? -1 : static_cast<int>(empty - cells_.begin());
}

const Array& Sample::out(std::string_view field) {
  return out(schema_->at(field));
}

const Array& Sample::out(int index) {
  if (!(*schema_)[index].is_fixed()) {
    refuse((*schema_)[index], "has a variable shape; call resize() with the sample's shape");
  }
  cell(index).filled = true;
  return cell(index).value;
}

const Array& Sample::resize(std::string_view field, const Shape& shape) {
  return resize(schema_->at(field), shape);
}

const Array& Sample::resize(int index, const Shape& shape) {
  const Field& field = (*schema_)[index];
  check_shape(field, shape);
  Cell& cell = this->cell(index);
  cell.filled = true;
  if (field.is_fixed()) return cell.value;
  auto bytes = static_cast<std::size_t>(shape.elements()) * item_size(field.dtype);
  cell.value = Array();
  // If the consumer kept the array of a list, its memory is left to it and new memory allocated.
  if (cell.scratch.size() < bytes || cell.scratch.shared()) {
    auto old_bytes = static_cast<std::int64_t>(cell.scratch.size());
    // A quarter more than needed, so that slowly growing lengths do not allocate each time.
    std::size_t room = std::max(bytes + bytes / 4, std::size_t{64});
    if (budget_) budget_->take(static_cast<std::int64_t>(room) - old_bytes);
    cell.scratch = Buffer();
    cell.scratch = Buffer::allocate(room);
  }
  cell.value = Array(field.dtype, shape, cell.scratch);
  return cell.value;
}

void Sample::set(std::string_view name, const Array& value) {
  set(schema_->at(name), value);
}

void Sample::set(int index, const Array& value) {
  const Field& field = (*schema_)[index];
  check_shape(field, value.shape());
  if (value.dtype() != field.dtype) {
    throw Error("field '" + field.name + "' holds " + std::string(name_of(field.dtype)) +
                ", but the sample has " + std::string(name_of(value.dtype())));
  }
  Cell& cell = this->cell(index);
  if (!field.is_fixed() && value.buffer().owned()) {
    cell.value = value;
  } else if (value.bytes() > 0) {
    std::memcpy(resize(index, value.shape()).data(), value.data(), value.bytes());
  } else {
    resize(index, value.shape());
  }
  cell.filled = true;
}

void Sample::set_text(std::string_view field, std::string_view text) {
  int index = schema_->at(field);
  if (!(*schema_)[index].text) refuse((*schema_)[index], "is not a text field");
  const Array& target = resize(index, {static_cast<std::int64_t>(text.size())});
  if (!text.empty()) std::memcpy(target.data(), text.data(), text.size());
}

const Array& Sample::operator[](std::string_view name) const {
  int index = schema_->at(name);
  const Cell& cell = cells_[static_cast<std::size_t>(index)];
  if (!cell.filled) refuse((*schema_)[index], "was not filled");
  return cell.value;
}

std::string_view Sample::text(std::string_view name) const {
  const Array& bytes = (*this)[name];
  return {reinterpret_cast<const char*>(bytes.data()), bytes.bytes()};
}

}  // namespace millrace
