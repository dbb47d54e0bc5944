// The interface of data sets. A data set knows its size and the fields of a sample, and loads one
// sample per call. `load` is called by many threads at the same time.
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

// Passed to load(). The same (seed, epoch, index) must give the same sample, so every random choice
// must come from random().
struct LoadContext {
  std::uint64_t seed = 42;
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  int worker = 0;  // number of the pool's thread, 0..threads-1: for decoders kept per thread
  const std::atomic<bool>* stop = nullptr;

  Random random(std::string_view stage) const { return {seed, epoch, index, stage}; }
  // True when the loader is being closed. A load that takes seconds should check it now and then.
  bool cancelled() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// A file that a data set found but does not offer as a sample, and why.
struct LeftOut {
  std::string source;  // its path, as in describe()
  std::string reason;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual const Schema& schema() const = 0;
  // Fills every field of `sample`, or returns an Error. An exception counts as a returned Error.
  virtual Status load(std::int64_t index, const LoadContext& context, Sample& sample) const = 0;
  // The name of a sample in messages and in the ledger, e.g. its path.
  virtual std::string describe(std::int64_t index) const {
    return "sample " + std::to_string(index);
  }
  // E.g. files without their pair, or folders that cannot be read. A loader records them in its
  // ledger; they do not count as bad samples.
  virtual std::vector<LeftOut> left_out() const { return {}; }
  // Number of samples that one task should load. More than 1 if a sample takes only microseconds,
  // since starting a task costs about as much.
  virtual std::int64_t samples_per_task() const { return 1; }
  // Announces the sample that this thread will load after the current one. A data set in memory may
  // prefetch it; most do nothing. It must not block.
  virtual void expect(std::int64_t /*index*/) const noexcept {}
  // Relative cost of loading a sample in any unit, e.g. the size of its file. The most expensive
  // sample of a batch is started first, so that the batch does not wait for it at the end. 0:
  // unknown.
  virtual std::int64_t cost(std::int64_t /*index*/) const { return 0; }
  // Length of a sample along its variable axis, e.g. the number of faces of a mesh, for batches of
  // similar length (LoaderOptions::bucket). Must be fast, constant and must not throw. 0: unknown.
  virtual std::int64_t length(std::int64_t /*index*/) const { return 0; }
};

// A shared, read-only handle of a data set. Made from any data set by copy or move, or from a
// shared_ptr to one.
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
