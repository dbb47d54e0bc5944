#include "text_embeddings.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/listing/printable.h>

#include <cstring>
#include <map>

namespace millrace::detail {

namespace {

constexpr const char* field_name = "text_embeds";

Error refusal(const std::string& why, const std::filesystem::path& path) {
  return Error("text_embeds: " + why).at(printable(path)).kind(ErrorKind::usage);
}

// The last extent of [d], [t, d] or [-1, d].
std::int64_t dim_of(const Field& field, const std::filesystem::path& path) {
  const int rank = field.shape.rank();
  const bool fits = field.dtype == DType::float32 && !field.text && (rank == 1 || rank == 2) &&
                    field.shape[rank - 1] > 0;
  if (fits) return field.shape[rank - 1];
  throw refusal("rows must be float32 [d] or [t, d], but are " + std::string(name_of(field.dtype)) +
                    " " + to_string(field.shape),
                path);
}

std::string without_extension(const std::string& name) {
  const std::size_t dot = name.rfind('.'), slash = name.rfind('/');
  const bool has = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return has ? name.substr(0, dot) : name;
}

// Row by name, with and without the extension. -1: two rows have this name.
std::map<std::string, std::int64_t> rows_by_name(const std::filesystem::path& path) {
  const ArrowDataset names(path, {.columns = {"source"}});
  std::map<std::string, std::int64_t> rows;
  Sample sample(names.schema());
  for (std::int64_t row = 0; row < names.size(); ++row) {
    sample.restart();
    if (Status status = names.load(row, {}, sample); !status.ok()) throw status.error();
    const std::string name(sample.text("source"));
    rows[name] = row;
    if (without_extension(name) == name) continue;
    auto [place, fresh] = rows.try_emplace(without_extension(name), row);
    if (!fresh && place->second != row) place->second = -1;
  }
  return rows;
}

}  // namespace

TextEmbeddings::TextEmbeddings(const std::filesystem::path& path,
                               const std::vector<MeshName>& meshes, std::int64_t listed) {
  if (path.extension() == ".npy") {
    auto rows = std::make_shared<NpyDataset>(path, MemmapOptions{.field = field_name});
    if (rows->size() != listed) {
      throw refusal("it has " + std::to_string(rows->size()) + " rows, but there are " +
                        std::to_string(listed) + " meshes; row i is for the i-th mesh by name",
                    path);
    }
    for (const MeshName& mesh : meshes) row_of_.push_back(mesh.place);
    rows_ = std::move(rows);
  } else {
    rows_ = std::make_shared<ArrowDataset>(path, ArrowOptions{.columns = {field_name}});
    const auto by_name = rows_by_name(path);
    for (const MeshName& mesh : meshes) {
      auto found = by_name.find(mesh.relative);
      if (found == by_name.end()) found = by_name.find(without_extension(mesh.relative));
      if (found == by_name.end() || found->second < 0) {
        throw refusal((found == by_name.end() ? "no row has the source '" : "several rows are '") +
                          mesh.relative + "', with or without its extension",
                      path);
      }
      row_of_.push_back(found->second);
    }
  }
  dim_ = dim_of(rows_->schema()[0], path);
}

Status TextEmbeddings::load(std::int64_t index, const LoadContext& context, int field,
                            Sample& sample) const {
  Sample row(rows_->schema());
  const std::int64_t at = row_of_[static_cast<std::size_t>(index)];
  if (Status status = rows_->load(at, context, row); !status.ok()) return status;
  const Array& value = row.value(0);
  const Array& to = sample.resize(field, {value.elements() / dim_, dim_});
  if (value.bytes() > 0) std::memcpy(to.data(), value.data(), value.bytes());
  return {};
}

}  // namespace millrace::detail
