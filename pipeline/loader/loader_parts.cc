#include "loader_parts.h"

#include "loader_checks.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace millrace::detail {

namespace {

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

// Bytes of all slots together.
struct Prediction {
  std::int64_t host = 0, device = 0;
  std::int64_t stacked = 0;  // fields of fixed shape, as the consumer sees them
  bool unknown = false;      // some field does not declare its size

  void add(const FieldPlan& plan, std::int64_t rows, std::int64_t workers, bool on_device) {
    const Field& field = plan.declared;
    if (field.is_fixed()) {
      auto loaded = static_cast<std::int64_t>(plan.loaded_bytes);
      stacked += rows * (plan.to_float ? 4 * loaded : loaded);
      host += rows * static_cast<std::int64_t>(plan.host_bytes);
      if (plan.float_on_host) host += workers * loaded;
      device += rows * static_cast<std::int64_t>(plan.device_bytes + plan.converted_bytes);
      return;
    }
    // Once as loaded, with room to grow, and once collated.
    auto item = static_cast<std::int64_t>(item_size(field.dtype));
    std::int64_t bytes = rows * field.max_elements * item;
    bool collated = plan.form == FieldForm::collated;
    host += bytes * 5 / 4 + (collated ? bytes : 0);
    if (on_device && collated) device += bytes;
    unknown = unknown || field.max_elements == 0;
  }
};

}  // namespace

LoaderParts::LoaderParts(AnyDataset data, LoaderOptions given)
    : dataset(std::move(data)),
      options(std::move(given)),
      schema(dataset->schema()),
      sampler(sampler_options(*dataset, options)),
      pool((check_options(*dataset, options), choose_pool(options))),
      ledger(ledger_path(options), options.position.has_value()),
      clock(pool->threads(), options.trace),
      fields(plan_fields(schema, options)),
      host_memory(host_pool(options)),
      device_memory(device_pool(options, consumer)) {
  for (const FieldPlan& plan : fields) {
    if (plan.form == FieldForm::stacked) stacked.push_back(&plan);
    if (plan.float_on_host) converted.push_back(&plan);
  }
  reserve_pixels();
  predict_memory();
  record_left_out();
}

void LoaderParts::reserve_pixels() {
  pixels.resize(static_cast<std::size_t>(pool->threads()));
  for (auto& worker : pixels) {
    for (const FieldPlan* plan : converted) worker.push_back(Buffer::allocate(plan->loaded_bytes));
  }
}

void LoaderParts::predict_memory() {
  std::int64_t slots = options.prefetch + 1, rows = options.batch_size;
  bool on_device = options.device != nullptr;
  Prediction bytes;
  for (const FieldPlan& plan : fields) bytes.add(plan, slots * rows, pool->threads(), on_device);
  predicted_bytes = bytes.host;
  std::string text = "peak memory " + in_megabytes(bytes.host) + " (" + std::to_string(slots) +
                     " slots x " + std::to_string(rows) + " rows)";
  if (bytes.device > 0) text += ", on the device " + in_megabytes(bytes.device);
  if (bytes.unknown) text += ", plus fields of unknown size";
  require(options.max_bytes == 0 || bytes.host <= options.max_bytes,
          text + " is over max_bytes (" + in_megabytes(options.max_bytes) +
              "); lower prefetch or batch_size");
  log(LogLevel::info, "loader: " + text);
  // The rest is for samples of variable shape, which may turn out larger than predicted.
  if (options.max_bytes > 0) {
    budget.limit = std::max<std::int64_t>(options.max_bytes - bytes.stacked, 1);
  }
}

// Every rank leaves out the same files; rank 0 records them.
void LoaderParts::record_left_out() {
  if (options.rank != 0) return;
  for (LeftOut& entry : dataset->left_out()) {
    ledger.add({.source = std::move(entry.source),
                .stage = "list",
                .reason = std::move(entry.reason),
                .index = -1,
                .position = -1});
  }
}

}  // namespace millrace::detail
