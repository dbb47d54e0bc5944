// What is settled before a loader runs: every option checked, every policy looked up, and the
// memory predicted.
#include "slot.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace millrace {

namespace {

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error(problem).stage("loader").kind(ErrorKind::usage);
}

std::string in_megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

SamplerOptions sampler_options(const Dataset& dataset, const LoaderOptions& options) {
  return {.size = dataset.size(),
          .batch_size = options.batch_size,
          .shuffle = options.shuffle,
          .tail = options.tail,
          .rank = options.rank,
          .world = options.world,
          .group = options.group,
          .bucket_window = options.bucket.window,
          .lengths = [data = &dataset](std::int64_t index, std::int64_t epoch) {
            return data->length(index, epoch);
          }};
}

std::shared_ptr<Pool> choose_pool(const LoaderOptions& options) {
  require(options.threads >= 0,
          "threads must not be negative, but is " + std::to_string(options.threads));
  require(options.threads == 0 || options.pool == nullptr,
          "give either threads or a pool, not both");
  if (options.threads > 0) return std::make_shared<Pool>(options.threads);
  return options.pool ? options.pool : Pool::shared();
}

// errors.jsonl of rank 0 is errors.rank1.jsonl on rank 1: processes do not share a file.
std::filesystem::path ledger_path(const LoaderOptions& options) {
  std::filesystem::path path = options.errors.ledger;
  if (path.empty() || options.rank == 0) return path;
  std::string name = path.stem().string() + ".rank" + std::to_string(options.rank);
  return path.replace_filename(name + path.extension().string());
}

std::vector<Collate> collations(const Schema& schema, const LoaderOptions& options) {
  std::vector<Collate> result(static_cast<std::size_t>(schema.size()));
  for (const auto& [name, policy] : options.collate) {
    int index = schema.at(name);
    const Field& field = schema[index];
    std::string who = "collate: field '" + name + "' " + to_string(field.shape);
    require(!field.is_fixed() || policy.kind == Collate::Kind::stack,
            who + " has a fixed shape and is stacked; it takes no other collation");
    require(policy.axis < field.shape.rank(), who + " has no axis " + std::to_string(policy.axis));
    require(policy.axis < 0 || field.is_fixed() || field.shape[policy.axis] < 0,
            who + " does not vary along axis " + std::to_string(policy.axis));
    require(policy.shape.empty() || (policy.shape.is_fixed() && field.shape.admits(policy.shape)),
            who + " cannot be padded to " + to_string(policy.shape));
    result[static_cast<std::size_t>(index)] = policy;
  }
  return result;
}

std::vector<std::optional<ToFloat>> conversions(const Schema& schema,
                                                const LoaderOptions& options) {
  std::vector<std::optional<ToFloat>> result(static_cast<std::size_t>(schema.size()));
  for (const auto& [name, conversion] : options.to_float) {
    int index = schema.at(name);
    const Field& field = schema[index];
    require(field.is_fixed() && field.dtype == DType::uint8,
            "to_float: field '" + name + "' must be uint8 of fixed shape, but is " +
                std::string(name_of(field.dtype)) + " " + to_string(field.shape));
    to_float_shape(conversion, field.shape);
    result[static_cast<std::size_t>(index)] = conversion;
  }
  return result;
}

BufferPool host_pool(const LoaderOptions& options) {
  if (!options.device) return BufferPool(&Buffer::allocate);
  return BufferPool([device = options.device](std::size_t n) { return device->allocate_host(n); });
}

BufferPool device_pool(const LoaderOptions& options,
                       const std::shared_ptr<ConsumerStream>& consumer) {
  if (!options.device) return BufferPool(&Buffer::allocate);
  auto allocate = [device = options.device](std::size_t n) { return device->allocate(n); };
  return BufferPool(allocate,
                    [device = options.device, consumer] { return consumer->record(*device); });
}

// A data set that knows no lengths gives the batches that it would give without buckets, or worse.
void check_lengths(const Dataset& dataset, const LoaderOptions& options) {
  if (options.bucket.window == 0) return;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    if (dataset.length(i) > 0) return;
  }
  throw Error("bucket: the dataset does not know the length of any sample")
      .stage("loader")
      .kind(ErrorKind::usage)
      .hint("Leave bucket.window at 0, or override Dataset::length()");
}

void check_limits(const Dataset& dataset, const LoaderOptions& options) {
  require(options.prefetch >= 1 && options.prefetch <= 4096,
          "prefetch must be 1 to 4096 batches, but is " + std::to_string(options.prefetch));
  require(dataset.schema().size() > 0, "the dataset's schema has no fields");
  require(options.max_bytes >= 0, "max_bytes must not be negative");
  check_lengths(dataset, options);
  require(options.errors.max_attempts >= 1, "errors.max_attempts must be at least 1, but is " +
                                                std::to_string(options.errors.max_attempts));
  require(options.errors.max_fraction >= 0 && options.errors.max_fraction <= 1,
          "errors.max_fraction must lie between 0 and 1, but is " +
              std::to_string(options.errors.max_fraction));
  if (options.position) {
    require(options.position->epoch >= 0 && options.position->next >= 0 &&
                options.position->next <= dataset.size() && options.position->part >= 0 &&
                options.position->part < std::max<std::int64_t>(options.group, 1) &&
                has_sound_buckets(*options.position),
            "position {epoch " + std::to_string(options.position->epoch) + ", next " +
                std::to_string(options.position->next) + "} is not in a dataset of " +
                std::to_string(dataset.size()) + " samples");
  }
}

}  // namespace

LoaderParts::LoaderParts(AnyDataset data, LoaderOptions given)
    : dataset(std::move(data)),
      options(std::move(given)),
      schema(dataset->schema()),
      sampler(sampler_options(*dataset, options)),
      pool((check_limits(*dataset, options), choose_pool(options))),
      ledger(ledger_path(options), options.position.has_value()),
      clock(pool->threads(), options.trace),
      collate(collations(schema, options)),
      to_float(conversions(schema, options)),
      host_memory(host_pool(options)),
      device_memory(device_pool(options, consumer)) {
  std::int64_t slots = options.prefetch + 1, rows = options.batch_size;
  std::int64_t host = 0, device = 0, fixed = 0;  // `fixed`: of fields of fixed shape
  bool unknown = false;
  undecoded.resize(static_cast<std::size_t>(pool->threads()));
  for (int i = 0; i < schema.size(); ++i) {
    const Field& field = schema[i];
    bool convert = to_float[static_cast<std::size_t>(i)].has_value();
    auto item = static_cast<std::int64_t>(item_size(field.dtype));
    bool listed = collate[static_cast<std::size_t>(i)].kind == Collate::Kind::list;
    std::int64_t batch = 0;
    if (field.is_fixed()) {
      batch = slots * rows * field.shape.elements() * item;
      std::int64_t floats = convert ? slots * rows * field.shape.elements() * 4 : 0;
      bool float_on_host = convert && !options.device;
      fixed += convert ? floats : batch;
      host += float_on_host ? floats + pool->threads() * field.shape.elements() : batch;
      if (options.device) device += batch + floats;
    } else {
      // Once as it was loaded, with room to grow, and once collated.
      batch = slots * rows * field.max_elements * item;
      host += batch * 5 / 4 + (listed ? 0 : batch);
      if (options.device && !listed) device += batch;
      unknown = unknown || field.max_elements == 0;
    }
    for (auto& worker : undecoded) {
      worker.push_back(convert && !options.device
                           ? Buffer::allocate(static_cast<std::size_t>(field.shape.elements()))
                           : Buffer());
    }
  }
  predicted_bytes = host;
  std::string text = "peak memory " + in_megabytes(host) + " (" + std::to_string(slots) +
                     " slots x " + std::to_string(rows) + " rows)";
  if (device > 0) text += ", on the device " + in_megabytes(device);
  if (unknown) text += ", plus fields of unknown size";
  require(options.max_bytes == 0 || host <= options.max_bytes,
          text + " is over max_bytes (" + in_megabytes(options.max_bytes) +
              "); lower prefetch or batch_size");
  log(LogLevel::info, "loader: " + text);
  // What samples of variable shape may take beyond what was predicted for them.
  if (options.max_bytes > 0) budget.limit = std::max<std::int64_t>(options.max_bytes - fixed, 1);
  if (options.rank != 0) return;  // every rank leaves out the same
  for (LeftOut& entry : dataset->left_out()) {
    ledger.add({.source = std::move(entry.source),
                .stage = "list",
                .reason = std::move(entry.reason),
                .index = -1,
                .position = -1});
  }
}

Shape LoaderParts::batch_shape(int field) const {
  const auto& conversion = to_float[static_cast<std::size_t>(field)];
  return conversion ? to_float_shape(*conversion, schema[field].shape) : schema[field].shape;
}

DType LoaderParts::batch_dtype(int field) const {
  return to_float[static_cast<std::size_t>(field)] ? DType::float32 : schema[field].dtype;
}

}  // namespace millrace
