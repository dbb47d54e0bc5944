#include "cache_description.h"

#include "checksum.h"

#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/error.h>

#include <nlohmann/json.hpp>

namespace millrace::detail {

namespace {

using nlohmann::json;

constexpr int layout_version = 1;
constexpr std::string_view side_begin = "{\"millrace\": ";
constexpr std::string_view seal_begin = ",\n\"xxh3\": \"";
constexpr std::string_view seal_end = "\"}\n";
constexpr std::size_t seal_bytes = seal_begin.size() + 16 + seal_end.size();

json to_json(const Schema& schema) {
  json fields = json::array();
  for (const Field& field : schema) {
    json shape = json::array();
    for (std::int64_t extent : field.shape) shape.push_back(extent);
    fields.push_back({{"name", field.name},
                      {"dtype", name_of(field.dtype)},
                      {"shape", shape},
                      {"text", field.text}});
  }
  return fields;
}

DType dtype_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DType::float64); ++i) {
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  throw Error("there is no type named " + name);
}

Schema schema_from(const json& fields) {
  std::vector<Field> result;
  for (const json& field : fields) {
    Shape shape;
    for (const json& extent : field.at("shape")) shape.push_back(extent.get<std::int64_t>());
    result.push_back({.name = field.at("name"),
                      .dtype = dtype_named(field.at("dtype")),
                      .shape = shape,
                      .text = field.at("text")});
  }
  return Schema(std::move(result));
}

json to_json(const CacheFailure& failure) {
  return {failure.index, failure.source.name, failure.source.bytes, failure.source.time_ns,
          failure.reason};
}

CacheFormat format_named(const std::string& name) {
  for (CacheFormat format : {CacheFormat::npy, CacheFormat::raw, CacheFormat::arrow}) {
    if (name_of(format) == name) return format;
  }
  throw Error("there is no format named " + name);
}

CacheInfo info_from(const json& j) {
  CacheInfo info;
  info.described = true;
  info.format = format_named(j.at("format"));
  info.schema = schema_from(j.at("fields"));
  info.rows = j.at("rows");
  info.compression = j.at("compression");
  info.version = j.at("version");
  info.sources = j.at("sources");
  info.failed = j.at("failed");
  info.shard_rows = j.at("shard_rows");
  info.options = j.at("options").get<std::map<std::string, std::string>>();
  info.fingerprint = j.at("fingerprint");
  info.reasons = j.at("reasons").get<std::map<std::string, std::int64_t>>();
  info.binary = j.at("binary").get<std::vector<std::string>>();
  for (const json& f : j.at("first_failures")) {
    info.first_failures.push_back(
        {.index = f.at(0), .source = {f.at(1), f.at(2), f.at(3)}, .reason = f.at(4)});
  }
  for (const json& part : j.at("parts")) {
    info.parts.push_back({.rows = part.at(0), .bytes = part.at(1), .xxh3 = part.at(2)});
  }
  return info;
}

}  // namespace

std::string to_text(const CacheDescription& description) {
  const CacheInfo& info = description.info;
  json failures = json::array(), parts = json::array();
  for (const CacheFailure& failure : info.first_failures) failures.push_back(to_json(failure));
  for (const CacheInfo::Part& part : info.parts) {
    parts.push_back({part.rows, part.bytes, part.xxh3});
  }
  json j{{"layout", layout_version},
         {"version", info.version},
         {"format", name_of(info.format)},
         {"fields", to_json(info.schema)},
         {"rows", info.rows},
         {"compression", info.compression},
         {"sources", info.sources},
         {"failed", info.failed},
         {"shard_rows", info.shard_rows},
         {"options", info.options},
         {"fingerprint", info.fingerprint},
         {"reasons", info.reasons},
         {"first_failures", failures},
         {"parts", parts},
         {"binary", info.binary}};
  if (info.format != CacheFormat::arrow) {
    j["header"] = {description.header_bytes, description.header_xxh3};
    j["source_list"] = {description.sources_bytes, description.sources_xxh3};
  }
  return j.dump();
}

CacheDescription from_text(std::string_view text, const std::filesystem::path& path) {
  try {
    json j = json::parse(text);
    if (int layout = j.at("layout"); layout != layout_version) {
      throw Error("the cache has layout " + std::to_string(layout) + ", and this Millrace knows " +
                  std::to_string(layout_version));
    }
    CacheDescription description;
    description.info = info_from(j);
    if (description.info.format != CacheFormat::arrow) {
      description.header_bytes = j.at("header").at(0);
      description.header_xxh3 = j.at("header").at(1);
      description.sources_bytes = j.at("source_list").at(0);
      description.sources_xxh3 = j.at("source_list").at(1);
    }
    std::int64_t rows = 0;
    for (const CacheInfo::Part& part : description.info.parts) {
      if (part.rows < 0 || part.bytes < 0 || __builtin_add_overflow(rows, part.rows, &rows)) {
        throw Error("a part has an impossible size");
      }
    }
    if (rows != description.info.rows) throw Error("the parts do not add up to the rows");
    return description;
  } catch (const std::exception& error) {
    throw Error("the description of the cache is damaged (" + std::string(error.what()) + ")")
        .at(path.string());
  }
}

std::string seal_description(const CacheDescription& description) {
  std::string text(side_begin);
  text += to_text(description);
  std::string seal = to_hex(checksum_of(text));
  return text.append(seal_begin).append(seal).append(seal_end);
}

CacheDescription open_description(std::string_view content, const std::filesystem::path& path) {
  bool framed = content.size() > side_begin.size() + seal_bytes &&
                content.starts_with(side_begin) && content.ends_with(seal_end) &&
                content.substr(content.size() - seal_bytes).starts_with(seal_begin);
  if (!framed) throw Error("not a description of a cache, or cut off").at(path.string());
  std::string_view body = content.substr(0, content.size() - seal_bytes);
  std::string_view seal = content.substr(body.size() + seal_begin.size(), 16);
  if (to_hex(checksum_of(body)) != seal) {
    throw Error("the description of the cache is damaged (checksum mismatch)").at(path.string());
  }
  return from_text(body.substr(side_begin.size()), path);
}

std::filesystem::path description_path(const std::filesystem::path& cache) {
  return cache.string() + ".json";
}
std::filesystem::path sources_file_of(const std::filesystem::path& cache) {
  return cache.string() + ".sources.jsonl";
}

std::map<std::string, std::string> plan_of(const CacheInfo& info) {
  std::map<std::string, std::string> plan{
      {"format", name_of(info.format)},  {"fields", to_string(info.schema)},
      {"compression", info.compression}, {"number of sources", std::to_string(info.sources)},
      {"source list", info.fingerprint}, {"sources per shard", std::to_string(info.shard_rows)}};
  std::string binary;
  for (const std::string& field : info.binary) binary += binary.empty() ? field : ", " + field;
  plan["fields kept encoded"] = binary;
  for (const auto& [name, value] : info.options) plan["option '" + name + "'"] = value;
  return plan;
}

std::string differences(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& now) {
  std::string text;
  auto tell = [&](const std::string& name, const std::string& old, const std::string& fresh) {
    if (!text.empty()) text += "; ";
    text.append(name).append(": ").append(old.empty() ? "(none)" : old).append(" before, ");
    text.append(fresh.empty() ? "(none)" : fresh).append(" now");
  };
  for (const auto& [name, value] : before) {
    auto found = now.find(name);
    if (found == now.end()) {
      tell(name, value, "");
    } else if (found->second != value) {
      tell(name, value, found->second);
    }
  }
  for (const auto& [name, value] : now) {
    if (!before.contains(name)) tell(name, "", value);
  }
  return text;
}

std::string to_line(std::int64_t index, const CacheSource& source, const std::string* reason) {
  json line{{"index", index},
            {"source", printable(std::string_view(source.name))},
            {"bytes", source.bytes},
            {"time_ns", source.time_ns}};
  if (reason != nullptr) line["failed"] = printable(std::string_view(*reason));
  return line.dump() + "\n";
}

SourceLine from_line(std::string_view line, const std::filesystem::path& path) {
  try {
    json j = json::parse(line);
    SourceLine result{.index = j.at("index"),
                      .source = {j.at("source"), j.at("bytes"), j.at("time_ns")},
                      .failed = j.contains("failed"),
                      .reason = {}};
    if (result.failed) result.reason = j.at("failed");
    return result;
  } catch (const json::exception& error) {
    throw Error("a line of the source list is damaged (" + std::string(error.what()) + ")")
        .at(path.string());
  }
}

}  // namespace millrace::detail
