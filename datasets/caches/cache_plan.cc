#include "cache_plan.h"

#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <bit>

namespace millrace::detail {

namespace {

constexpr std::int64_t shard_target_bytes = 16 << 20, most_shards = 1 << 16;

std::int64_t choose_shard_rows(const CachePlan& plan, const CacheOptions& options) {
  require_cache(options.shard_rows >= 0, "shard_rows must not be negative");
  if (options.shard_rows > 0) return options.shard_rows;
  std::int64_t bytes = row_bytes(plan.schema), rows = 1024;
  if (bytes > 0) {
    auto fitting = static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(shard_target_bytes / bytes, 1, 1 << 16));
    rows = static_cast<std::int64_t>(std::bit_floor(fitting));
  }
  while (plan.sources / rows > most_shards) rows *= 2;
  return rows;
}

void check_schema(const CacheInfo& info) {
  require_cache(info.schema.size() > 0, "the schema has no fields");
  if (info.format != CacheFormat::arrow) {
    require_cache(info.schema.size() == 1 && info.schema[0].is_fixed(),
                  std::string(name_of(info.format)) +
                      " holds one field of fixed shape, but there are: " + to_string(info.schema),
                  "Write Arrow, or keep one field of fixed shape");
    require_cache(info.compression == "none",
                  std::string(name_of(info.format)) + " is never compressed; write Arrow");
    require_cache(info.schema[0].shape.rank() < Shape::max_rank, "the field has too many axes");
  }
  for (const std::string& name : info.binary) {
    const Field& field = info.schema[info.schema.at(name)];
    require_cache(field.dtype == DType::uint8 && field.shape == Shape{-1} && !field.text,
                  "field '" + name + "' is to hold encoded media, and must be uint8 [-1]");
  }
}

}  // namespace

void require_cache(bool condition, const std::string& problem, const std::string& hint) {
  if (!condition) throw Error(problem).stage("cache").kind(ErrorKind::usage).hint(hint);
}

CacheInfo describe_plan(const std::filesystem::path& out, const CachePlan& plan,
                        const CacheOptions& options) {
  CacheInfo info;
  info.described = true;
  info.format = options.format ? *options.format : format_of(out);
  info.schema = plan.schema;
  require_cache(options.zstd_level >= 0 && options.zstd_level <= 22, "zstd has the levels 1 to 22");
  if (options.zstd_level > 0) info.compression = "zstd:" + std::to_string(options.zstd_level);
  info.version = MILLRACE_VERSION;
  info.sources = plan.sources;
  require_cache(plan.sources >= 0, "there cannot be " + std::to_string(plan.sources) + " sources");
  info.shard_rows = choose_shard_rows(plan, options);
  for (const auto& [name, value] : plan.options)
    info.options[printable(std::string_view(name))] = printable(std::string_view(value));
  info.fingerprint = printable(std::string_view(plan.fingerprint));
  info.binary = options.binary;
  check_schema(info);
  return info;
}

}  // namespace millrace::detail
