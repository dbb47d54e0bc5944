#include "dense_cache.h"
#include "row_reading.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/pipeline/base/error.h>

#include <cstring>
#include <utility>

namespace millrace {

using namespace detail;

namespace {

std::string field_name(const MemmapOptions& options, const DenseCache& cache) {
  if (!options.field.empty()) return options.field;
  return cache.description ? cache.description->info.schema[0].name : "values";
}

}  // namespace

MemmapDataset::MemmapDataset(std::filesystem::path path, DenseCache cache, MemmapOptions options)
    : path_(std::move(path)),
      rows_(cache.rows),
      schema_{{.name = field_name(options, cache),
               .dtype = cache.rows.dtype(),
               .shape = cache.rows.shape().without_front()}} {
  row_bytes_ = static_cast<std::size_t>(schema_[0].shape.elements()) * item_size(rows_.dtype());
}

Status MemmapDataset::load(std::int64_t index, const LoadContext&, Sample& sample) const {
  if (index < 0 || index >= size()) {
    return Error("there is no row " + std::to_string(index) + " of " + std::to_string(size()))
        .at(path_.string())
        .kind(ErrorKind::usage);
  }
  std::byte* to = sample.out(0).data();
  const std::byte* from = rows_.data() + static_cast<std::size_t>(index) * row_bytes_;
  if (rows_.dtype() == DType::boolean) {
    // The file may hold any byte, but a bool must be 0 or 1.
    for (std::size_t i = 0; i < row_bytes_; ++i) to[i] = std::byte{from[i] != std::byte{0}};
  } else if (row_bytes_ > 0) {
    std::memcpy(to, from, row_bytes_);
  }
  return {};
}

std::int64_t MemmapDataset::samples_per_task() const {
  return rows_worth_a_task(static_cast<std::int64_t>(row_bytes_));
}

void MemmapDataset::expect(std::int64_t index, std::int64_t /*epoch*/) const noexcept {
  if (index >= 0 && index < size()) {
    fetch_ahead(rows_.data() + static_cast<std::size_t>(index) * row_bytes_, row_bytes_);
  }
}

std::string MemmapDataset::describe(std::int64_t index) const {
  return path_.string() + ", row " + std::to_string(index);
}

NpyDataset::NpyDataset(const std::filesystem::path& path, MemmapOptions options)
    : MemmapDataset(path, open_dense(path, CacheFormat::npy, options.access), options) {}

RawMemmap::RawMemmap(const std::filesystem::path& path, MemmapOptions options)
    : MemmapDataset(path, open_dense(path, CacheFormat::raw, options.access), options) {}

RawMemmap::RawMemmap(const std::filesystem::path& path, Field field, std::int64_t rows,
                     MemmapOptions options)
    : MemmapDataset(
          path, open_raw(path, field, rows, options.access),
          {.field = options.field.empty() ? field.name : options.field, .access = options.access}) {
}

}  // namespace millrace
