// Converts batches to the rows of a cache. An array file (.npy, raw) holds one field, Arrow all.
#pragma once

#include "tools/preprocess/job.h"

#include <millrace/pipeline/data/batch.h>

#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

// Converts int64 tokens to a smaller type; throws if a token does not fit.
Array narrowed(const Array& tokens, DType dtype);

class CacheRows {
 public:
  CacheRows(const Job& job, CacheFormat format);

  // What a row of the cache holds.
  const Schema& schema() const { return schema_; }
  // Large enough to keep the threads busy, small enough to save memory.
  std::int64_t batch_size(std::int64_t samples) const;

  // The batch must live until its last row() was written.
  void take(const Batch& batch) { batch_ = &batch; }
  std::span<const Array> row(std::int64_t number);

 private:
  const Job& job_;
  std::vector<int> kept_;  // fields of the data set
  Schema schema_;
  const Batch* batch_ = nullptr;
  std::vector<Array> row_;
};

}  // namespace millrace
