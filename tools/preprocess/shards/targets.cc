#include "tools/preprocess/shards/targets.h"

#include <millrace/pipeline/base/random.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace millrace {

namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(problem).kind(ErrorKind::usage);
}

int zstd_level(const std::string& text) {
  if (text.empty() || text == "none") return 0;
  std::string_view level = text;
  if (level == "zstd") return 3;
  int value = 0;
  if (level.starts_with("zstd:")) {
    level.remove_prefix(5);
    auto [end, error] = std::from_chars(level.data(), level.data() + level.size(), value);
    if (error == std::errc() && end == level.data() + level.size() && value >= 1 && value <= 22) {
      return value;
    }
  }
  refuse("--compress takes zstd:1 to zstd:22, but was given '" + text + "'");
}

// The same parts as random_split gives, each in the order of the files.
std::vector<std::vector<std::int64_t>> split_indices(const std::vector<SplitPart>& parts,
                                                     std::int64_t sources, std::uint64_t seed) {
  std::vector<std::int64_t> order = torch_randperm(sources, seed);
  std::vector<std::vector<std::int64_t>> result;
  auto from = order.begin();
  for (const SplitPart& part : parts) {
    auto length = static_cast<std::int64_t>(part.fraction * static_cast<double>(sources));
    bool last = result.size() + 1 == parts.size();
    auto to = last ? order.end() : from + length;
    result.emplace_back(from, to);
    std::ranges::sort(result.back());
    if (result.back().empty()) {
      refuse(fmt::format("--split: {} of {} sources is none for '{}'", part.fraction, sources,
                         part.name));
    }
    from = to;
  }
  return result;
}

// Tokens are small but slow to make, so a shard holds few files and a killed run loses little. With
// many files a shard holds more, to limit the number of shards in the folder.
std::int64_t token_shard_rows(std::int64_t sources) {
  constexpr std::int64_t fewest = 32, most_shards = 1024;
  return std::max(fewest, (sources + most_shards - 1) / most_shards);
}

CachePlan plan_of(const Job& job, const Schema& schema, const Targets::Target& target) {
  SourceFingerprint fingerprint;
  for (std::int64_t i = 0; i < target.sources; ++i) fingerprint.add(job.source(target.index(i)));
  CachePlan plan{.schema = schema,
                 .sources = target.sources,
                 .fingerprint = fingerprint.value(),
                 .options = job.options};
  if (!target.part.empty()) plan.options["part"] = target.part;
  return plan;
}

}  // namespace

CacheFormat chosen_format(const RunOptions& options) {
  if (options.raw && !options.format.empty() && options.format != "raw") {
    refuse("--raw and --format " + options.format + " contradict each other");
  }
  if (options.raw || options.format == "raw") return CacheFormat::raw;
  if (options.format == "npy") return CacheFormat::npy;
  if (options.format == "arrow") return CacheFormat::arrow;
  return format_of(options.out);
}

std::vector<SplitPart> parse_split(const std::string& text) {
  std::vector<SplitPart> parts;
  double sum = 0;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t to = std::min(text.find(',', from), text.size());
    std::string item = text.substr(from, to - from);
    from = to + 1;
    std::size_t equals = item.find('=');
    SplitPart part{.name = item.substr(0, equals)};
    const char* end = item.data() + item.size();
    bool ok = equals != std::string::npos && equals > 0 && part.name.find('/') == std::string::npos;
    if (ok) {
      auto [stop, error] = std::from_chars(item.data() + equals + 1, end, part.fraction);
      ok = error == std::errc() && stop == end && part.fraction > 0 && part.fraction < 1;
    }
    if (!ok) {
      refuse("--split takes names with fractions, e.g. train=0.95,valid=0.05, but was given '" +
             text + "'");
    }
    if (std::ranges::find(parts, part.name, &SplitPart::name) != parts.end()) {
      refuse("--split names '" + part.name + "' twice");
    }
    sum += part.fraction;
    parts.push_back(part);
  }
  if (!parts.empty() && std::abs(sum - 1) > 1e-6) {
    refuse(fmt::format("--split: the fractions must add up to 1, but give {}", sum));
  }
  return parts;
}

std::filesystem::path part_path(const std::filesystem::path& out, const std::string& part) {
  std::filesystem::path path = out;
  return path.replace_filename(out.stem().string() + "." + part + out.extension().string());
}

Targets::Targets(const Job& job, const RunOptions& options, const Schema& schema, bool dry) {
  std::int64_t sources = job.data->size();
  if (options.limit >= 0) sources = std::min(sources, options.limit);
  if (sources == 0) refuse("--limit 0 leaves nothing to do");
  CacheOptions cache{.format = chosen_format(options),
                     .zstd_level = zstd_level(options.compress),
                     .shard_rows = options.shard_rows,
                     .binary = job.binary,
                     .fresh = options.fresh};
  bool fixed = std::ranges::all_of(schema, &Field::is_fixed);
  if (cache.shard_rows == 0 && !fixed) cache.shard_rows = job.varying_shard_rows;
  if (cache.shard_rows == 0 && job.slow_rows) cache.shard_rows = token_shard_rows(sources);
  std::vector<SplitPart> parts = parse_split(options.split);
  if (parts.empty()) {
    targets_.push_back({.path = options.out, .part = {}, .sources = sources});
  } else {
    auto indices = split_indices(parts, sources, options.seed);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      targets_.push_back(
          {.path = part_path(options.out, parts[i].name),
           .part = fmt::format("{} of {}, seed {}", parts[i].name, options.split, options.seed),
           .sources = static_cast<std::int64_t>(indices[i].size()),
           .indices = std::move(indices[i])});
    }
  }
  std::int64_t shards = 0;
  for (Target& target : targets_) {
    target.first_shard = shards;
    if (dry) continue;
    target.writer.emplace(target.path, plan_of(job, schema, target), cache);
    shards += target.writer->shards();
  }
}

std::int64_t Targets::sources() const {
  std::int64_t sum = 0;
  for (const Target& target : targets_) sum += target.sources;
  return sum;
}

std::int64_t Targets::shards() const {
  std::int64_t sum = 0;
  for (const Target& target : targets_) sum += target.writer ? target.writer->shards() : 0;
  return sum;
}

bool Targets::complete() const {
  return std::ranges::all_of(targets_, [](const Target& t) { return t.writer->complete(); });
}

std::vector<std::int64_t> Targets::missing() const {
  std::vector<std::int64_t> all;
  for (const Target& target : targets_) {
    if (target.writer->complete()) continue;
    for (std::int64_t shard : target.writer->missing()) all.push_back(target.first_shard + shard);
  }
  return all;
}

std::pair<Targets::Target*, std::int64_t> Targets::find(std::int64_t shard) {
  for (auto target = targets_.rbegin(); target != targets_.rend(); ++target) {
    if (shard >= target->first_shard) return {&*target, shard - target->first_shard};
  }
  throw Error("there is no shard " + std::to_string(shard)).kind(ErrorKind::usage);
}

}  // namespace millrace
