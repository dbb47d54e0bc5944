#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/batch.h>
#include <millrace/pipeline/loader/slot/batch_data.h>

#include <algorithm>
#include <string>

namespace millrace {

namespace {

[[noreturn]] void refuse(std::string_view field, const std::string& problem) {
  throw Error("field '" + std::string(field) + "' " + problem).kind(ErrorKind::usage);
}

}  // namespace

std::int64_t Batch::size() const {
  return data_->rows;
}
std::span<const std::int64_t> Batch::indices() const {
  return data_->indices;
}
std::span<const BadSample> Batch::dropped() const {
  return data_->dropped;
}
std::optional<double> Batch::padding() const {
  if (std::ranges::find(data_->forms, detail::FieldForm::collated) == data_->forms.end()) return {};
  if (data_->collated_bytes <= 0) return 0;
  return static_cast<double>(data_->padding_bytes) / static_cast<double>(data_->collated_bytes);
}
std::int64_t Batch::wrapped() const {
  return data_->wrapped;
}
const Position& Batch::position() const {
  return data_->step.at;
}
const Position& Batch::next_position() const {
  return data_->step.after;
}

const Array& Batch::operator[](std::string_view field) const {
  auto index = static_cast<std::size_t>(data_->schema->at(field));
  if (data_->forms[index] == detail::FieldForm::list) {
    refuse(field, "is kept as a list; use list() or texts(), or give it a collation");
  }
  return data_->arrays[index];
}

std::span<const Array> Batch::list(std::string_view field) const {
  auto index = static_cast<std::size_t>(data_->schema->at(field));
  if (data_->forms[index] != detail::FieldForm::list)
    refuse(field, "is one array, not a list; use operator[]");
  return data_->lists[index];
}

std::span<const std::string_view> Batch::texts(std::string_view field) const {
  auto index = static_cast<std::size_t>(data_->schema->at(field));
  if (!(*data_->schema)[static_cast<int>(index)].text) refuse(field, "is not a text field");
  if (data_->forms[index] != detail::FieldForm::list) {
    refuse(field, "was collated into one array; use operator[]");
  }
  return data_->texts[index];
}

const Array& Batch::lengths(std::string_view field) const {
  auto index = static_cast<std::size_t>(data_->schema->at(field));
  if (data_->forms[index] != detail::FieldForm::collated) {
    refuse(field, "has no lengths: it has a fixed shape or is kept as a list");
  }
  return data_->lengths[index];
}

Array Batch::mask(std::string_view field) const {
  const Array& valid = lengths(field);
  if (valid.shape().rank() != 1) refuse(field, "varies along several axes; use lengths()");
  int index = data_->schema->at(field);
  const Shape& declared = (*data_->schema)[index].shape;
  int axis = static_cast<int>(std::ranges::find(declared, -1) - declared.begin());
  std::int64_t longest = data_->arrays[static_cast<std::size_t>(index)].shape()[axis + 1];
  Array mask = Array::empty(DType::boolean, {size(), longest});
  bool* to = mask.as<bool>().data();
  for (std::int64_t length : valid.as<const std::int64_t>()) {
    for (std::int64_t i = 0; i < longest; ++i) *to++ = i < length;
  }
  return mask;
}

void Batch::wait_on(void* stream) const {
  if (data_->device == nullptr) return;
  data_->device->wait(stream, data_->ready);
  data_->consumer->stream = stream;
  data_->consumer->used = true;
}

}  // namespace millrace
