#include "tools/inspect/cache_view.h"

#include "tools/cli/progress.h"
#include "tools/inspect/statistics.h"
#include "tools/inspect/tiles.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Row numbers spread evenly over the cache, at most `count`.
std::vector<std::int64_t> spread(std::int64_t rows, std::int64_t count) {
  std::vector<std::int64_t> chosen;
  count = std::min(rows, count);
  for (std::int64_t i = 0; i < count; ++i) {
    chosen.push_back(count == 1 ? 0 : i * (rows - 1) / (count - 1));
  }
  return chosen;
}

Sample load_row(const AnyDataset& data, std::int64_t row) {
  Sample sample(data->schema());
  Status status = data->load(row, {.index = row}, sample);
  if (!status.ok()) {
    Error error = status.error();
    throw error.source().empty() ? error.at(data->describe(row)) : error;
  }
  return sample;
}

bool is_binary(const CacheInfo& info, const std::string& field) {
  return std::ranges::find(info.binary, field) != info.binary.end();
}

// An unreadable row of our own cache is damage; caches of others may have null values.
std::vector<FieldStatistics> statistics_of(const AnyDataset& data, bool ours, std::int64_t rows,
                                           std::string& unreadable) {
  std::vector<FieldStatistics> all(static_cast<std::size_t>(data->schema().size()));
  std::int64_t failed = 0;
  std::string reason;
  for (std::int64_t row : spread(data->size(), rows)) {
    try {
      Sample sample = load_row(data, row);
      for (std::size_t i = 0; i < all.size(); ++i) all[i].add(sample.value(static_cast<int>(i)));
    } catch (const Error& error) {
      if (ours) throw;
      if (failed++ == 0) reason = error.what();
    }
  }
  if (failed > 0) unreadable = fmt::format("{} rows cannot be read, e.g. {}", failed, reason);
  return all;
}

std::string field_line(const CacheInfo& info, const Field& field, const FieldStatistics& s) {
  std::string type = field.text ? "text"
                     : is_binary(info, field.name)
                         ? "files, as they are"
                         : fmt::format("{} {}", name_of(field.dtype), to_string(field.shape));
  std::string line = fmt::format("  {:<12} {:<28}", field.name, type);
  if (s.rows == 0) return line;
  if (!field.is_fixed()) line += fmt::format(" {} to {} elements;", s.fewest, s.most);
  if (!field.text && !is_binary(info, field.name) && s.elements > 0) {
    line += fmt::format(" {:.6g} to {:.6g}, mean {:.6g}", s.low, s.high, s.mean());
  }
  if (s.not_finite > 0) line += fmt::format(", {} NOT FINITE", s.not_finite);
  return line;
}

std::string escaped(std::string_view text, std::size_t most) {
  std::string shown;
  for (char c : text.substr(0, most)) {
    if (c == '\n') {
      shown += "\\n";
    } else {
      shown += static_cast<unsigned char>(c) < 32 ? '?' : c;
    }
  }
  return text.size() > most ? shown + "..." : shown;
}

void print_row(const AnyDataset& data, std::int64_t row, json* result) {
  if (row < 0 || row >= data->size()) {
    throw Error(fmt::format("--row {}: there are rows 0 to {}", row, data->size() - 1))
        .kind(ErrorKind::usage);
  }
  Sample sample = load_row(data, row);
  if (!result) fmt::print("row {} ({}):\n", row, data->describe(row));
  for (int i = 0; i < data->schema().size(); ++i) {
    const Field& field = data->schema()[i];
    const Array& value = sample.value(i);
    std::string text =
        field.text ? "\"" + escaped(sample.text(field.name), 200) + "\"" : first_values(value, 12);
    if (result) {
      (*result)["row"][field.name] = {
          {"dtype", name_of(value.dtype())},
          {"shape", std::vector(value.shape().begin(), value.shape().end())},
          {"values", text}};
    } else {
      fmt::print("  {:<12} {:<24} {}\n", field.name, to_string(value), text);
    }
  }
}

void write_sheet(const AnyDataset& data, const ViewOptions& options) {
  Tiles tiles;
  std::int64_t columns = 8;
  for (std::int64_t row : spread(data->size(), options.samples)) {
    Tiles made = tiles_of(load_row(data, row), options.frames);
    if (made.size() > 1) columns = options.frames;  // one clip per line
    while (columns == options.frames && made.size() > 1 &&
           made.size() < static_cast<std::size_t>(options.frames)) {
      made.push_back(made.back());
    }
    tiles.insert(tiles.end(), made.begin(), made.end());
    if (columns == options.frames && tiles.size() >= static_cast<std::size_t>(12 * columns)) break;
  }
  if (tiles.empty()) {
    throw Error("--sheet: no field of this can be shown: " + to_string(data->schema()))
        .kind(ErrorKind::usage);
  }
  write_png_file(make_sheet(tiles, {.columns = columns}), options.sheet);
}

json to_json(const CacheInfo& info, const fs::path& path) {
  json result{{"path", path.string()},       {"format", name_of(info.format)},
              {"rows", info.rows},           {"compression", info.compression},
              {"described", info.described}, {"bytes", fs::file_size(path)}};
  if (!info.unreadable.empty()) result["unreadable"] = info.unreadable;
  if (info.described) {
    result["version"] = info.version;
    result["sources"] = info.sources;
    result["failed"] = info.failed;
    result["options"] = info.options;
    result["reasons"] = info.reasons;
    result["fingerprint"] = info.fingerprint;
  }
  return result;
}

// The line of Python that opens the cache memory-mapped.
std::string recipe(const CacheInfo& info, const fs::path& path) {
  if (info.format == CacheFormat::npy) {
    return fmt::format("numpy.load(\"{}\", mmap_mode=\"r\")", path.string());
  }
  if (info.format == CacheFormat::arrow) {
    return fmt::format("pyarrow.ipc.open_file(pyarrow.memory_map(\"{}\")).read_all()",
                       path.string());
  }
  std::string shape = std::to_string(info.rows);
  for (std::int64_t extent : info.schema[0].shape) shape += fmt::format(", {}", extent);
  return fmt::format("numpy.memmap(\"{}\", \"{}\", \"r\", shape=({},))", path.string(),
                     name_of(info.schema[0].dtype), shape);
}

void print_info(const CacheInfo& info, const fs::path& path) {
  fmt::print("{}: {}, {} rows, {}{}\n", path.string(), name_of(info.format), info.rows,
             in_bytes(static_cast<double>(fs::file_size(path))),
             info.compression == "none" ? "" : ", " + info.compression);
  if (!info.described) {
    fmt::print("not written by Millrace: no sources, no checksums\n");
    for (const auto& [name, type] : info.unreadable) {
      fmt::print("  {:<12} {} (which cannot be a field of a sample)\n", name, type);
    }
    return;
  }
  fmt::print("made by Millrace {} of {} sources, {} failed, in {} parts\n", info.version,
             info.sources, info.failed, info.parts.size());
  for (const auto& [reason, count] : info.reasons) fmt::print("  {:6} x {}\n", count, reason);
  for (const auto& [name, value] : info.options) fmt::print("  {} = {}\n", name, value);
  fmt::print("opens with {}\n", recipe(info, path));
  if (info.format == CacheFormat::arrow) {
    fmt::print("and that table with datasets.Dataset(table), polars.from_arrow(table), DuckDB\n");
  }
}

void print_sources(const fs::path& path) {
  std::int64_t shown = 0;
  for_each_source(path, [&](std::int64_t row, const CacheSource& source) {
    if (shown++ < 3) {
      fmt::print("  row {:<6} {} ({})\n", row, source.name,
                 in_bytes(static_cast<double>(source.bytes)));
    }
  });
  if (shown > 3) fmt::print("  ... and {} more sources\n", shown - 3);
}

}  // namespace

bool is_cache(const fs::path& path) {
  try {
    format_of(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

AnyDataset open_cache(const fs::path& path, const CacheInfo& info) {
  ArrowOptions columns;
  for (const Field& field : info.schema) {
    if (!info.described) columns.columns.push_back(field.name);
  }
  switch (format_of(path)) {
    case CacheFormat::npy:
      return std::make_shared<NpyDataset>(path);
    case CacheFormat::raw:
      return std::make_shared<RawMemmap>(path);
    default:
      return std::make_shared<ArrowDataset>(path, columns);
  }
}

int view_cache(const fs::path& path, const ViewOptions& options) {
  CacheInfo info = read_cache_info(path);
  AnyDataset data = open_cache(path, info);
  json result = to_json(info, path);
  json* out = options.json ? &result : nullptr;
  if (!out) print_info(info, path);
  std::string unreadable;
  std::vector<FieldStatistics> numbers = statistics_of(data, info.described, 256, unreadable);
  for (int i = 0; i < data->schema().size(); ++i) {
    const FieldStatistics& s = numbers[static_cast<std::size_t>(i)];
    const Field& field = data->schema()[i];
    if (!out) {
      fmt::print("{}\n", field_line(info, field, s));
      continue;
    }
    json described{{"name", field.name},
                   {"dtype", field.text ? "text" : std::string(name_of(field.dtype))},
                   {"shape", std::vector(field.shape.begin(), field.shape.end())}};
    if (s.elements > 0) described.update({{"low", s.low}, {"high", s.high}, {"mean", s.mean()}});
    result["fields"].push_back(described);
  }
  if (!out && !unreadable.empty()) fmt::print("{}\n", unreadable);
  if (!out && info.rows > 256) fmt::print("(values of 256 rows, spread over all)\n");
  if (!out && info.described) print_sources(path);
  if (options.row >= 0) print_row(data, options.row, out);
  if (!options.sheet.empty()) {
    write_sheet(data, options);
    if (!out) fmt::print("{}: a contact sheet of its rows\n", options.sheet);
  }
  int code = 0;
  if (options.verify) {
    CacheCheck check = verify_cache(path);
    code = check.problems.empty() ? 0 : 1;
    if (out) {
      result["verify"] = {{"bytes", check.bytes},
                          {"has_checksums", check.has_checksums},
                          {"problems", check.problems}};
    } else if (check.problems.empty()) {
      fmt::print(
          "verified: {} rows, {}{}\n", check.rows, in_bytes(static_cast<double>(check.bytes)),
          check.has_checksums ? " agree with their checksums" : ", layout only (no checksums)");
    }
    for (const std::string& problem : check.problems) {
      fmt::print(stderr, "inspect: {}: {}\n", path.string(), problem);
    }
  }
  if (out) fmt::print("{}\n", result.dump(-1, ' ', false, json::error_handler_t::replace));
  return code;
}

}  // namespace millrace
