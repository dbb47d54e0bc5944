#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/schema.h>

#include <utility>

namespace millrace {

Schema::Schema(std::vector<Field> fields) : fields_(std::move(fields)) {
  for (int i = 0; i < size(); ++i) {
    if ((*this)[i].name.empty()) {
      throw Error("field " + std::to_string(i) + " of a schema has no name").kind(ErrorKind::usage);
    }
    if (find((*this)[i].name) != i) {
      throw Error("the schema names the field '" + (*this)[i].name + "' twice")
          .kind(ErrorKind::usage);
    }
  }
}

int Schema::find(std::string_view name) const {
  for (int i = 0; i < size(); ++i) {
    if ((*this)[i].name == name) return i;
  }
  return -1;
}

int Schema::at(std::string_view name) const {
  int index = find(name);
  if (index < 0) {
    throw Error("there is no field '" + std::string(name) + "'; there are: " + to_string(*this))
        .kind(ErrorKind::usage);
  }
  return index;
}

std::int64_t row_bytes(const Schema& schema) {
  std::int64_t bytes = 0;
  for (const Field& field : schema) {
    if (!field.is_fixed()) return -1;
    bytes += field.shape.elements() * static_cast<std::int64_t>(item_size(field.dtype));
  }
  return bytes;
}

std::string to_string(const Schema& schema) {
  std::string text;
  for (const Field& field : schema) {
    if (!text.empty()) text += ", ";
    text += field.name + " ";
    text += field.text ? "text" : std::string(name_of(field.dtype)) + " " + to_string(field.shape);
  }
  return text;
}

}  // namespace millrace
