// Loads every sample of a data set once and keeps it, in memory or in a file: for data that take
// long to decode and fit there. The data set's random choices are kept too; apply augmentation that
// must differ from epoch to epoch after the cache, with map().
//
//   Cached in_memory(VideoFolder("clips"), {.max_bytes = std::int64_t{8} << 30});
//   // The first run writes the file, later runs only read it.
//   Cached in_file(VideoFolder("clips"), {.file = "clips.arrow", .options = {{"frames", "17"}}});
#pragma once

#include <millrace/datasets/folders/video_folder.h>
#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/data/adapter.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace millrace {

struct CachedOptions {
  // The constructor writes this file, in parallel and resumable (see CacheWriter); a later run only
  // opens it. A sample that fails is stored as a failure. Empty: samples are kept in memory as they
  // are loaded.
  std::filesystem::path file{};
  // Every option that the content depends on, stored in the file: a file that was written with
  // other options is refused.
  std::map<std::string, std::string> options{};
  int zstd_level = 0;            // of the file; 0: not compressed
  std::shared_ptr<Pool> pool{};  // writes the file; null: Pool::shared()
  std::int64_t max_bytes = 0;    // in memory; samples beyond it are loaded every time; 0: no limit
};

// Samples are those of epoch 0, whenever they are loaded: a run that is resumed in a later epoch
// gets the same samples as one that was never stopped.
class Cached : public Adapter {
 public:
  explicit Cached(AnyDataset dataset, CachedOptions options = {});

  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  // With a file: the number that fits the file's rows.
  std::int64_t samples_per_task() const override;
  // Prefetches from the file, or from the data set while the sample is not in memory.
  void expect(std::int64_t index, std::int64_t epoch = 0) const noexcept override;

  std::int64_t bytes() const;  // held in memory now

 protected:
  Target target(std::int64_t index, std::int64_t /*epoch*/) const override {
    return {.index = index, .epoch = 0};
  }

 private:
  struct Kept;   // the samples in memory
  struct Filed;  // the file, and which samples are not in it

  std::shared_ptr<Kept> kept_;
  std::shared_ptr<const Filed> filed_;
};

}  // namespace millrace
