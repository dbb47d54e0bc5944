#include "dense_cache.h"

#include "npy_header.h"

#include <millrace/datasets/caches/shard_file.h>
#include <millrace/pipeline/base/error.h>

#include <string>

namespace millrace::detail {

namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Throws if the description does not belong to this file.
void check_agreement(const CacheDescription& d, std::span<const std::byte> file,
                     const std::filesystem::path& path) {
  const CacheInfo& info = d.info;
  if (info.schema.size() != 1 || !info.schema[0].is_fixed() || info.rows < 0) {
    throw Error("the description does not tell of one field of fixed shape").at(path.string());
  }
  std::uint64_t bytes = 0, row = 0;
  bool too_large =
      __builtin_mul_overflow(static_cast<std::uint64_t>(info.schema[0].shape.elements()),
                             item_size(info.schema[0].dtype), &row) ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(info.rows), row, &bytes) ||
      __builtin_add_overflow(bytes, d.header_bytes, &bytes);
  if (too_large || bytes != file.size()) {
    throw Error("the file has " + std::to_string(file.size()) + " bytes, but its description " +
                "tells of " + std::to_string(info.rows) + " rows, which need " +
                std::to_string(bytes))
        .at(path.string());
  }
  std::uint64_t total = d.header_bytes;
  for (const CacheInfo::Part& part : info.parts) total += static_cast<std::uint64_t>(part.bytes);
  if (total != file.size()) throw Error("the parts do not fill the file").at(path.string());
  if (to_hex(checksum_of(file.first(d.header_bytes))) != d.header_xxh3) {
    throw Error("the header is damaged (checksum mismatch)").at(path.string());
  }
}

}  // namespace

std::optional<CacheDescription> read_description(const std::filesystem::path& cache) {
  std::filesystem::path path = description_path(cache);
  if (!std::filesystem::exists(path)) return std::nullopt;
  MappedFile file(path);
  return open_description(as_text(file.bytes()), path);
}

DenseCache open_dense(const std::filesystem::path& path, CacheFormat format, Access access) {
  MappedFile file(path, access);
  std::optional<CacheDescription> description = read_description(path);
  if (!description && format == CacheFormat::raw) {
    throw Error("a raw file without " + description_path(path).filename().string() +
                " beside it does not tell its type and shape")
        .at(path.string())
        .hint("Give them");
  }
  if (description && description->info.format != format) {
    throw Error("the description beside it is of another format").at(path.string());
  }
  if (description) check_agreement(*description, file.bytes(), path);
  NpyHeader header;
  if (format == CacheFormat::npy) header = read_npy_header(file.bytes(), path);
  if (description) {
    const Field& known = description->info.schema[0];
    Shape whole = known.shape.with_front(description->info.rows);
    DType stored = known.dtype == DType::bfloat16 ? DType::uint16 : known.dtype;
    bool same = header.dtype == stored && header.shape == whole &&
                header.bytes == description->header_bytes;
    if (format == CacheFormat::npy && !same) {
      throw Error("the header and the description beside the file do not agree").at(path.string());
    }
    header = {.dtype = known.dtype, .shape = whole, .bytes = description->header_bytes};
  }
  if (header.bytes % item_size(header.dtype) != 0) {
    throw Error("the elements do not begin at a multiple of their size").at(path.string());
  }
  Array rows = file.array(header.dtype, header.shape, header.bytes);
  return {std::move(rows), std::move(file), std::move(description)};
}

DenseCache open_raw(const std::filesystem::path& path, const Field& field, std::int64_t rows,
                    Access access) {
  MappedFile file(path, access);
  if (!field.is_fixed()) {
    throw Error("the rows of a raw file have a fixed shape, not " + to_string(field.shape))
        .at(path.string())
        .kind(ErrorKind::usage);
  }
  auto elements = static_cast<std::uint64_t>(field.shape.elements());
  std::uint64_t row = 0, needed = 0;
  bool fits = !__builtin_mul_overflow(elements, item_size(field.dtype), &row) && row > 0 &&
              file.size() % row == 0;
  if (fits && rows >= 0) {
    fits = !__builtin_mul_overflow(row, static_cast<std::uint64_t>(rows), &needed) &&
           needed == file.size();
  }
  if (!fits) {
    throw Error("the file has " + std::to_string(file.size()) + " bytes, and not " +
                (rows >= 0 ? std::to_string(rows) : "a whole number of") + " rows of " +
                std::string(name_of(field.dtype)) + " " + to_string(field.shape) + " (" +
                std::to_string(row) + " bytes each)")
        .at(path.string());
  }
  Shape shape = field.shape.with_front(static_cast<std::int64_t>(file.size() / row));
  Array all = file.array(field.dtype, shape);
  return {std::move(all), std::move(file), std::nullopt};
}

std::vector<std::string> verify_dense(const CacheDescription& description,
                                      std::span<const std::byte> file) {
  std::vector<std::string> problems;
  std::size_t offset = description.header_bytes;
  std::int64_t row = 0;
  for (const CacheInfo::Part& part : description.info.parts) {
    auto bytes = static_cast<std::size_t>(part.bytes);
    if (offset > file.size() || bytes > file.size() - offset) {
      problems.push_back("the file ends before row " + std::to_string(row));
      break;
    }
    if (to_hex(checksum_of_mapped(file.subspan(offset, bytes))) != part.xxh3) {
      problems.push_back("rows " + std::to_string(row) + " to " +
                         std::to_string(row + part.rows - 1) + ": checksum mismatch");
    }
    offset += bytes;
    row += part.rows;
  }
  return problems;
}

void count_failures(CacheDescription& description, std::string_view lines,
                    const std::filesystem::path& path) {
  constexpr std::size_t most_listed = 100, most_reasons = 50;
  CacheInfo& info = description.info;
  for_each_line(lines, [&](std::string_view text) {
    if (text.find("\"failed\"") == std::string_view::npos)
      return;  // most lines are not failures: not parsed
    SourceLine line = from_line(text, path);
    if (!line.failed) return;
    ++info.failed;
    bool known = info.reasons.contains(line.reason) || info.reasons.size() < most_reasons;
    ++info.reasons[known ? line.reason : "other reasons"];
    if (info.first_failures.size() < most_listed) {
      info.first_failures.push_back({line.index, line.source, line.reason});
    }
  });
}

DenseJoiner::DenseJoiner(const CacheInfo& plan, std::int64_t most_rows,
                         const std::filesystem::path& folder, const std::filesystem::path& out)
    : out_(out),
      data_(folder, out),
      sources_(folder, sources_file_of(out)),
      description_file_(folder, description_path(out)) {
  description_.info = plan;
  data_.write(header(most_rows));
  description_.header_bytes = data_.size();
}

std::string DenseJoiner::header(std::int64_t rows) const {
  const CacheInfo& info = description_.info;
  if (info.format != CacheFormat::npy) return {};
  return make_npy_header(info.schema[0].dtype, info.schema[0].shape.with_front(rows));
}

bool DenseJoiner::has_room_for(std::int64_t rows) const {
  return header(rows).size() == description_.header_bytes;
}

void DenseJoiner::add(const std::filesystem::path& path, std::uint64_t plan) {
  OpenShard shard = open_shard(path, plan, static_cast<std::int64_t>(added()));
  std::uint64_t begin = data_.size();
  read_once(shard.payload(), [&](auto piece) { data_.write(piece); });
  data_.begin_sync();
  {
    MappedFile written(data_.temporary(), Access::sequential);
    const auto payload = written.bytes().subspan(begin, shard.payload().size());
    if (checksum_of_mapped(payload) != shard.tail.payload_xxh3) {
      throw Error("what was written does not read back (checksum mismatch)").at(out_.string());
    }
  }
  sources_.write(shard.lines());
  listed_.add(std::as_bytes(std::span(shard.lines())));
  count_failures(description_, shard.lines(), path);
  description_.info.parts.push_back({.rows = static_cast<std::int64_t>(shard.tail.rows),
                                     .bytes = static_cast<std::int64_t>(shard.tail.payload_bytes),
                                     .xxh3 = to_hex(shard.tail.payload_xxh3)});
}

CacheDescription DenseJoiner::finish(CacheDescription description) {
  CacheInfo& info = description.info;
  std::string first = header(info.rows);
  data_.overwrite(0, first);
  description.header_bytes = first.size();
  description.header_xxh3 = to_hex(checksum_of(first));
  info.failed = description_.info.failed;
  info.reasons = description_.info.reasons;
  info.first_failures = description_.info.first_failures;
  info.parts = description_.info.parts;
  description.sources_bytes = sources_.size();
  description.sources_xxh3 = to_hex(listed_.value());
  description_file_.write(seal_description(description));
  MappedFile written(data_.temporary(), Access::sequential);
  check_agreement(description, written.bytes(), out_);  // its parts were read back one by one
  // The data file gets its name last: a reader that sees it also finds the other two files.
  sources_.commit();
  description_file_.commit();
  data_.commit();
  return description;
}

void join_dense(CacheDescription& description, const JoinedShards& shards,
                const std::filesystem::path& folder, const std::filesystem::path& out,
                std::unique_ptr<DenseJoiner> begun) {
  std::int64_t rows = description.info.rows;
  if (!begun || !begun->has_room_for(rows)) {
    begun.reset();  // frees its disk space before a new file is started
    begun = std::make_unique<DenseJoiner>(description.info, rows, folder, out);
  }
  while (begun->added() < shards.paths.size()) {
    begun->add(shards.paths[begun->added()], shards.plan);
  }
  description = begun->finish(std::move(description));
}

}  // namespace millrace::detail
