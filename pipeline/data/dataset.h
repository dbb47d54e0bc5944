// What can be loaded. A data set knows its size and what a sample is made of, and fills one sample
// at a time; `load` is called from many threads at once.
//
//   class Squares : public Dataset {
//     std::int64_t size() const override { return 100; }
//     const Schema& schema() const override { return schema_; }
//     Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
//       sample.out("x").as<std::int64_t>()[0] = index * index;
//       return {};
//     }
//     Schema schema_{{.name = "x", .dtype = DType::int64, .shape = {}}};
//   };
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/data/sample.h>
#include <millrace/pipeline/data/schema.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {

// What a sample may depend on, besides its index. The same (seed, epoch, index) must give the same
// sample: take random choices from random(), and from nowhere else.
struct LoadContext {
  std::uint64_t seed = 42;
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  int worker = 0;  // which thread of the pool, 0..threads-1: for decoder state kept per thread
  const std::atomic<bool>* stop = nullptr;

  Random random(std::string_view stage) const { return {seed, epoch, index, stage}; }
  // True once the loader is being closed. A load that takes seconds should look now and then.
  bool cancelled() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// Something that a data set found and does not offer as a sample, and why.
struct LeftOut {
  std::string source;  // its path, as in describe()
  std::string reason;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual const Schema& schema() const = 0;
  // Fills every field of `sample`, or says why it cannot. What it throws counts as such an error.
  virtual Status load(std::int64_t index, const LoadContext& context, Sample& sample) const = 0;
  // What to call a sample in messages and in the ledger, e.g. its path.
  virtual std::string describe(std::int64_t index) const {
    return "sample " + std::to_string(index);
  }
  // A file without its pair, a folder that cannot be read and so on: a loader records them in its
  // ledger, where they do not count as bad samples.
  virtual std::vector<LeftOut> left_out() const { return {}; }
  // How many samples one task should load: more than one where a sample takes only microseconds,
  // so that starting tasks does not cost more than they do.
  virtual std::int64_t samples_per_task() const { return 1; }

  // The next three take the epoch too, because an index of a Mixture is another sample in every
  // epoch. A data set that wraps others derives from Adapter (adapter.h), which forwards them.

  // The calling thread loads this sample next. A data set over memory may start to prefetch it;
  // most do nothing. Must not block.
  virtual void expect(std::int64_t /*index*/, std::int64_t /*epoch*/ = 0) const noexcept {}
  // Estimated time to load the sample, in any unit, e.g. the size of its file in bytes. A loader
  // starts the most expensive samples of a batch first. 0: unknown.
  virtual std::int64_t cost(std::int64_t /*index*/, std::int64_t /*epoch*/ = 0) const { return 0; }
  // The extent that varies between samples, e.g. the number of faces of a mesh, for batches of
  // similar length (LoaderOptions::bucket). Returns at once, always the same number, and does not
  // throw. 0: unknown.
  virtual std::int64_t length(std::int64_t /*index*/, std::int64_t /*epoch*/ = 0) const {
    return 0;
  }
};

// How data sets are passed around: shared and read only. Made from any data set by copy or move,
// or from a shared_ptr to one.
class AnyDataset {
 public:
  AnyDataset(std::shared_ptr<const Dataset> dataset) : dataset_(std::move(dataset)) {  // NOLINT
    if (!dataset_) throw Error("a null dataset").kind(ErrorKind::usage);
  }
  // Implicit, so that Loader(VideoFolder(...)) reads well.
  template <typename D>
  requires std::derived_from<std::remove_cvref_t<D>, Dataset> AnyDataset(D&& dataset)  // NOLINT
      : dataset_(std::make_shared<std::remove_cvref_t<D>>(std::forward<D>(dataset))) {}
  template <std::derived_from<Dataset> D>
  AnyDataset(std::shared_ptr<D> dataset)  // NOLINT
      : AnyDataset(std::shared_ptr<const Dataset>(std::move(dataset))) {}

  const Dataset& operator*() const { return *dataset_; }
  const Dataset* operator->() const { return dataset_.get(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
};

}  // namespace millrace
