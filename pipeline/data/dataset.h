// The interface of data sets. A data set has a size and a schema and fills one sample at a time;
// loaders call `load` from many threads at once.
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

// What a sample may depend on besides its index. The same (seed, epoch, index) must give the same
// sample, so take random numbers only from random().
struct LoadContext {
  std::uint64_t seed = 42;
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  int worker = 0;  // number of the pool's thread, 0..threads-1: for decoder state per thread
  const std::atomic<bool>* stop = nullptr;

  Random random(std::string_view stage) const { return {seed, epoch, index, stage}; }
  // True once the loader is being closed. A load() that takes seconds should check it.
  bool cancelled() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// An entry that a data set found but that is not a sample, and the reason.
struct LeftOut {
  std::string source;  // path, as in describe()
  std::string reason;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual const Schema& schema() const = 0;
  // Fills every field of `sample`, or returns an error. An exception counts as an error too.
  virtual Status load(std::int64_t index, const LoadContext& context, Sample& sample) const = 0;
  // The sample's name in messages and in the ledger, e.g. its path.
  virtual std::string describe(std::int64_t index) const {
    return "sample " + std::to_string(index);
  }
  // E.g. files without their pair and folders that cannot be read. A loader writes them to its
  // ledger; they do not count as bad samples.
  virtual std::vector<LeftOut> left_out() const { return {}; }
  // Number of samples that one task loads. More than 1 if a sample takes only microseconds, so that
  // starting tasks does not take longer than loading.
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

// A shared, read-only reference to any data set. Made from a data set by copy or move, or from a
// shared_ptr.
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
