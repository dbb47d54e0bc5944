// Batches to the rows of a cache, fields as they were loaded. An array file has room for one field.
#pragma once

#include "tools/preprocess/job.h"

#include <millrace/pipeline/data/batch.h>

#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

// int64 tokens as another type, which must hold them.
Array narrowed(const Array& tokens, DType dtype);

class RowMaker {
 public:
  RowMaker(const Job& job, CacheFormat format);

  // What a row of the cache holds.
  const Schema& schema() const { return schema_; }
  // Enough rows to keep the threads busy, few enough to stay small in memory.
  std::int64_t batch_size(std::int64_t samples) const;

  // The batch must stay until the last row() of it.
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
