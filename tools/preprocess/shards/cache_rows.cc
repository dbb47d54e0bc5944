#include "tools/preprocess/shards/cache_rows.h"

#include <algorithm>

namespace millrace {

namespace {

// Which fields of the data set go into a cache of this format.
std::vector<int> kept_fields(const Job& job, CacheFormat format) {
  const Schema& schema = job.data->schema();
  int main = schema.find(job.main_field);
  std::vector<int> kept;
  for (int i = 0; i < schema.size(); ++i) {
    bool all = format == CacheFormat::arrow || main < 0;
    if (!all && schema[i].text) {
      throw Error(std::string(name_of(format)) + " has no room for the texts")
          .kind(ErrorKind::usage)
          .hint("Write Arrow" + (job.text_hint.empty() ? "" : ", " + job.text_hint));
    }
    if (all || i == main) kept.push_back(i);
  }
  return kept;
}

Schema schema_of(const Job& job, const std::vector<int>& kept) {
  std::vector<Field> fields;
  fields.reserve(kept.size());
  for (int i : kept) fields.push_back(job.data->schema()[i]);
  return Schema(fields);
}

template <typename To>
void narrow_to(std::span<const std::int64_t> from, const Array& to) {
  std::ranges::transform(from, to.as<To>().begin(),
                         [](std::int64_t token) { return static_cast<To>(token); });
}

}  // namespace

Array narrowed(const Array& tokens, DType dtype) {
  if (dtype == DType::int64) return tokens;
  Array result = Array::empty(dtype, tokens.shape());
  auto from = tokens.as<const std::int64_t>();
  switch (dtype) {
    case DType::uint8:
      narrow_to<std::uint8_t>(from, result);
      break;
    case DType::int8:
      narrow_to<std::int8_t>(from, result);
      break;
    case DType::uint16:
      narrow_to<std::uint16_t>(from, result);
      break;
    case DType::int16:
      narrow_to<std::int16_t>(from, result);
      break;
    case DType::uint32:
      narrow_to<std::uint32_t>(from, result);
      break;
    case DType::int32:
      narrow_to<std::int32_t>(from, result);
      break;
    default:
      throw Error("tokens cannot be stored as " + std::string(name_of(dtype)))
          .kind(ErrorKind::usage);
  }
  return result;
}

CacheRows::CacheRows(const Job& job, CacheFormat format)
    : job_(job),
      kept_(kept_fields(job, format)),
      schema_(schema_of(job, kept_)),
      row_(kept_.size()) {}

std::int64_t CacheRows::batch_size(std::int64_t samples) const {
  constexpr std::int64_t wanted_bytes = 4 << 20;
  std::int64_t bytes = row_bytes(job_.data->schema());
  if (bytes < 0 || job_.slow_rows) return std::clamp<std::int64_t>(samples, 1, 8);
  return std::clamp<std::int64_t>(wanted_bytes / std::max<std::int64_t>(bytes, 1), 1,
                                  std::min<std::int64_t>(samples, 256));
}

std::span<const Array> CacheRows::row(std::int64_t number) {
  const Schema& loaded = job_.data->schema();
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Field& field = loaded[kept_[i]];
    Array& to = row_[i];
    if (field.is_fixed()) {
      to = (*batch_)[field.name].row(number);
    } else {
      to = batch_->list(field.name)[static_cast<std::size_t>(number)];
    }
  }
  return row_;
}

}  // namespace millrace
