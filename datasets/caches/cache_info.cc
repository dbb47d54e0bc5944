#include "cache_description.h"
#include "checksum.h"
#include "shard_file.h"

#include <millrace/datasets/arrays/dense_cache.h>
#include <millrace/datasets/arrow/arrow_cache.h>
#include <millrace/datasets/caches/cache_info.h>
#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/base/error.h>

#include <string>
#include <string_view>

namespace millrace {

using namespace detail;

namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// By content, then by extension: a damaged file is at least recognized by its name.
CacheFormat detect(const std::filesystem::path& path) {
  MappedFile file(path);
  std::string_view text = as_text(file.bytes());
  if (text.starts_with("\x93NUMPY")) return CacheFormat::npy;
  if (text.starts_with("ARROW1"))
    return CacheFormat::arrow;  // a stream is recognized by its extension
  std::string ending = path.extension().string();
  if (ending == ".npy") return CacheFormat::npy;
  if (ending == ".arrow" || ending == ".feather") return CacheFormat::arrow;
  return CacheFormat::raw;
}

CacheInfo undescribed(const DenseCache& cache, CacheFormat format) {
  CacheInfo info;
  info.format = format;
  info.rows = cache.rows.shape()[0];
  info.schema = Schema{
      {.name = "values", .dtype = cache.rows.dtype(), .shape = cache.rows.shape().without_front()}};
  return info;
}

// The list of sources beside an array file, checked.
void for_each_source_line(const std::filesystem::path& path, const CacheDescription& description,
                          const std::function<void(const SourceLine&)>& use) {
  std::filesystem::path list = sources_file_of(path);
  MappedFile file(list, Access::sequential);
  if (file.size() != description.sources_bytes ||
      to_hex(checksum_of(file.bytes())) != description.sources_xxh3) {
    throw Error("the list of sources is damaged (checksum mismatch)").at(list.string());
  }
  for_each_line(as_text(file.bytes()), [&](std::string_view line) { use(from_line(line, list)); });
}

CacheCheck check_dense(const std::filesystem::path& path, CacheFormat format) {
  DenseCache cache = open_dense(path, format, Access::sequential);
  CacheCheck check{.rows = cache.rows.shape()[0],
                   .bytes = static_cast<std::int64_t>(cache.file.size()),
                   .has_checksums = cache.description.has_value(),
                   .problems = {}};
  if (!cache.description) return check;
  check.problems = verify_dense(*cache.description, cache.file.bytes());
  std::int64_t rows = 0, failed = 0;
  for_each_source_line(path, *cache.description,
                       [&](const SourceLine& line) { ++(line.failed ? failed : rows); });
  if (rows != cache.description->info.rows || failed != cache.description->info.failed) {
    check.problems.push_back("the list of sources has " + std::to_string(rows) + " rows and " +
                             std::to_string(failed) + " failures, and the cache says otherwise");
  }
  return check;
}

}  // namespace

const char* name_of(CacheFormat format) {
  constexpr const char* names[] = {"npy", "raw", "arrow"};
  return names[static_cast<int>(format)];
}

CacheFormat format_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  if (ending == ".npy") return CacheFormat::npy;
  if (ending == ".arrow" || ending == ".feather") return CacheFormat::arrow;
  if (ending == ".bin" || ending == ".raw" || ending == ".memmap") return CacheFormat::raw;
  throw Error("the name does not tell the format of the cache")
      .at(path.string())
      .kind(ErrorKind::usage)
      .hint("Let it end in .npy, .arrow or .bin, or give the format");
}

CacheInfo read_cache_info(const std::filesystem::path& path) {
  CacheFormat format = detect(path);
  if (format == CacheFormat::arrow) return read_arrow_info(path);
  DenseCache cache = open_dense(path, format, Access::normal);
  return cache.description ? cache.description->info : undescribed(cache, format);
}

void for_each_failure(const std::filesystem::path& path,
                      const std::function<void(const CacheFailure&)>& use) {
  CacheFormat format = detect(path);
  if (format == CacheFormat::arrow) return for_each_arrow_failure(path, use);
  auto description = read_description(path);
  if (!description) return;
  for_each_source_line(path, *description, [&](const SourceLine& line) {
    if (line.failed) use({line.index, line.source, line.reason});
  });
}

void for_each_source(const std::filesystem::path& path,
                     const std::function<void(std::int64_t row, const CacheSource&)>& use) {
  CacheFormat format = detect(path);
  if (format == CacheFormat::arrow) return for_each_arrow_source(path, use);
  auto description = read_description(path);
  if (!description) return;
  std::int64_t row = 0;
  for_each_source_line(path, *description, [&](const SourceLine& line) {
    if (!line.failed) use(row++, line.source);
  });
}

CacheCheck verify_cache(const std::filesystem::path& path) {
  try {
    CacheFormat format = detect(path);
    return format == CacheFormat::arrow ? check_arrow(path) : check_dense(path, format);
  } catch (const Error& error) {
    CacheCheck check;
    check.problems.emplace_back(error.what());
    return check;
  }
}

}  // namespace millrace
