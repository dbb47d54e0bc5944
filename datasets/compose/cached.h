// Loads every sample of a data set once and remembers it, in memory or in a file: for data that
// take long to decode and fit. What the data set chose at random that one time stays; put what
// shall differ from epoch to epoch behind it, with map().
//
//   Cached clips(VideoFolder("clips"), {.max_bytes = std::int64_t{8} << 30});          // in memory
//   Cached clips(VideoFolder("clips"), {.file = "clips.arrow",
//                                       .options = {{"frames", "17"}}});  // made now, if it is not
//                                       there
#pragma once

#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct CachedOptions {
  // Written when the Cached is made, in parallel and resumable (see CacheWriter); a later run only
  // opens it. Samples that fail are remembered as failures. Empty: in memory, as they are loaded.
  std::filesystem::path file{};
  std::map<std::string, std::string> options{};  // all that decides the content: kept in the file
  int zstd_level = 0;
  std::shared_ptr<Pool> pool{};  // to make the file with; null: Pool::shared()
  std::int64_t max_bytes = 0;    // in memory: what does not fit is loaded every time; 0: no limit
};

class Cached : public Dataset {
 public:
  explicit Cached(AnyDataset dataset, CachedOptions options = {});

  std::int64_t size() const override { return dataset_->size(); }
  const Schema& schema() const override { return dataset_->schema(); }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override { return dataset_->describe(index); }
  std::vector<LeftOut> left_out() const override { return dataset_->left_out(); }
  std::int64_t samples_per_task() const override;
  std::int64_t length(std::int64_t index) const override { return dataset_->length(index); }

  std::int64_t bytes() const;  // held in memory now

 private:
  struct Kept;   // what is in memory
  struct Filed;  // the file, and which samples are not in it

  AnyDataset dataset_;
  std::shared_ptr<Kept> kept_;
  std::shared_ptr<const Filed> filed_;
};

}  // namespace millrace
