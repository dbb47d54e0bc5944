#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/datasets/compose/cached.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

namespace millrace {

struct Cached::Kept {
  static constexpr std::size_t stripes =
      64;  // many locks, so that threads rarely wait for each other
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<std::int64_t, std::vector<Array>> samples;
  };
  std::array<Stripe, stripes> places;
  std::atomic<std::int64_t> bytes{0};
  std::int64_t limit = 0;

  Stripe& stripe(std::int64_t index) { return places[static_cast<std::size_t>(index) % stripes]; }
  bool find(std::int64_t index, std::vector<Array>& found) {
    Stripe& place = stripe(index);
    std::lock_guard lock(place.mutex);
    auto it = place.samples.find(index);
    if (it == place.samples.end()) return false;
    found = it->second;
    return true;
  }
  bool has(std::int64_t index) {
    Stripe& place = stripe(index);
    std::lock_guard lock(place.mutex);
    return place.samples.contains(index);
  }
  void keep(std::int64_t index, const Sample& sample);
};

namespace {

// A read-only copy: changes that a consumer makes must not appear in the next epoch.
Array frozen(const Array& value) {
  Array copy = value.clone();
  auto keep = [kept = copy.buffer()] {};
  return Array(value.dtype(), value.shape(),
               Buffer::adopt(copy.data(), copy.bytes(), Memory::mapped, keep));
}

std::vector<Array> row_of(const Batch& batch, const Schema& schema, std::int64_t row) {
  std::vector<Array> values;
  for (const Field& field : schema) {
    values.push_back(field.is_fixed() ? batch[field.name].row(row)
                                      : batch.list(field.name)[static_cast<std::size_t>(row)]);
  }
  return values;
}

// Appends samples and failures, in the order of their indices, to one shard after the other.
class Appender {
 public:
  Appender(CacheWriter& writer, const Dataset& dataset) : writer_(writer), dataset_(dataset) {}

  void begin(const std::vector<std::int64_t>& missing) { missing_ = missing; }
  template <typename Put>
  void put(std::int64_t index, const Put& append) {
    if (!shard_) shard_.emplace(writer_.begin(missing_[next_]));
    append(*shard_, CacheSource{.name = dataset_.describe(index)});
    if (index + 1 < *writer_.range(missing_[next_]).end()) return;
    shard_->finish();
    shard_.reset();
    ++next_;
  }

 private:
  CacheWriter& writer_;
  const Dataset& dataset_;
  std::vector<std::int64_t> missing_;
  std::size_t next_ = 0;
  std::optional<ShardWriter> shard_;
};

void fill(CacheWriter& writer, const AnyDataset& dataset, std::shared_ptr<Pool> pool) {
  std::vector<std::int64_t> missing = writer.missing(), indices;
  for (std::int64_t shard : missing) {
    for (std::int64_t index : writer.range(shard)) indices.push_back(index);
  }
  if (indices.empty()) return;
  Loader loader(
      Subset(dataset, indices),
      {.batch_size = 16, .pool = std::move(pool), .errors = {.drop = true, .max_fraction = 1.0}});
  Appender appender(writer, *dataset);
  appender.begin(missing);
  for (const Batch& batch : loader) {
    std::size_t dropped = 0;
    std::int64_t row = 0;
    while (row < batch.size() || dropped < batch.dropped().size()) {
      bool good = dropped == batch.dropped().size() ||
                  (row < batch.size() &&
                   batch.indices()[static_cast<std::size_t>(row)] < batch.dropped()[dropped].index);
      if (good) {
        std::int64_t index =
            indices[static_cast<std::size_t>(batch.indices()[static_cast<std::size_t>(row)])];
        auto values = row_of(batch, dataset->schema(), row++);
        appender.put(index, [&](ShardWriter& shard, const CacheSource& source) {
          shard.append(index, source, values);
        });
      } else {
        const BadSample& bad = batch.dropped()[dropped++];
        std::int64_t index = indices[static_cast<std::size_t>(bad.index)];
        appender.put(index, [&](ShardWriter& shard, const CacheSource& source) {
          shard.fail(index, source, bad.reason);
        });
      }
    }
  }
}

}  // namespace

void Cached::Kept::keep(std::int64_t index, const Sample& sample) {
  std::int64_t needed = 0;
  for (int i = 0; i < sample.schema().size(); ++i) {
    needed += static_cast<std::int64_t>(sample.value(i).bytes());
  }
  if (bytes.fetch_add(needed) + needed > limit && limit > 0) {
    bytes.fetch_sub(needed);
    return;
  }
  std::vector<Array> copies;
  for (int i = 0; i < sample.schema().size(); ++i) copies.push_back(frozen(sample.value(i)));
  Stripe& place = stripe(index);
  std::lock_guard lock(place.mutex);
  // Two threads may have loaded the same sample.
  if (!place.samples.emplace(index, std::move(copies)).second) bytes.fetch_sub(needed);
}

struct Cached::Filed {
  AnyDataset rows;
  std::map<std::int64_t, std::string> failed;  // by index
  std::vector<std::int64_t> failed_indices;

  explicit Filed(const std::filesystem::path& path, CacheFormat format)
      : rows(format == CacheFormat::arrow ? AnyDataset(ArrowDataset(path))
             : format == CacheFormat::npy ? AnyDataset(NpyDataset(path))
                                          : AnyDataset(RawMemmap(path))) {
    for_each_failure(path, [this](const CacheFailure& failure) {
      failed.emplace(failure.index, failure.reason);
      failed_indices.push_back(failure.index);
    });
  }
  // The file has no rows for failures.
  std::int64_t row(std::int64_t index) const {
    return index - (std::ranges::lower_bound(failed_indices, index) - failed_indices.begin());
  }
};

Cached::Cached(AnyDataset dataset, CachedOptions options) : Adapter(dataset) {
  if (options.file.empty()) {
    kept_ = std::make_shared<Kept>();
    kept_->limit = options.max_bytes;
    return;
  }
  CacheWriter writer(options.file,
                     {.schema = schema(), .sources = size(), .options = options.options},
                     {.zstd_level = options.zstd_level});
  if (!writer.complete()) {
    fill(writer, dataset, options.pool ? options.pool : Pool::shared());
    writer.join();
  }
  filed_ = std::make_shared<Filed>(options.file, format_of(options.file));
}

Status Cached::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  if (filed_) {
    auto failure = filed_->failed.find(index);
    if (failure != filed_->failed.end()) {
      return Error(failure->second).at(describe(index)).stage("cache");
    }
    return filed_->rows->load(filed_->row(index), context, sample);
  }
  std::vector<Array> found;
  if (kept_->find(index, found)) {
    for (std::size_t i = 0; i < found.size(); ++i) sample.set(static_cast<int>(i), found[i]);
    return {};
  }
  Status status = Adapter::load(index, context, sample);
  if (status.ok() && sample.first_unfilled() < 0) kept_->keep(index, sample);
  return status;
}

std::int64_t Cached::samples_per_task() const {
  return filed_ ? filed_->rows->samples_per_task() : Adapter::samples_per_task();
}

void Cached::expect(std::int64_t index, std::int64_t epoch) const noexcept {
  if (filed_) {
    if (!filed_->failed.contains(index)) filed_->rows->expect(filed_->row(index));
  } else if (!kept_->has(index)) {
    Adapter::expect(index, epoch);
  }
}

std::int64_t Cached::bytes() const {
  return kept_ ? kept_->bytes.load() : 0;
}

}  // namespace millrace
