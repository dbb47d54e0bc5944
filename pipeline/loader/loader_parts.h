// Private to the loader: what all its slots share. Nothing here changes once the loader runs,
// except members that synchronise themselves (ledger, clock, buffer pools, budget, stop).
#pragma once

#include <millrace/pipeline/data/dataset.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/loader/loader_options.h>
#include <millrace/pipeline/loader/slot/batch_data.h>
#include <millrace/pipeline/loader/slot/buffer_pool.h>
#include <millrace/pipeline/loader/slot/field_plan.h>
#include <millrace/pipeline/loader/stage_clock.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace::detail {

struct LoaderParts {
  // Checks the options, logs the peak memory and throws if it exceeds max_bytes.
  LoaderParts(AnyDataset dataset, LoaderOptions options);

  AnyDataset dataset;
  LoaderOptions options;
  const Schema& schema;
  Sampler sampler;
  std::shared_ptr<Pool> pool;
  Ledger ledger;
  StageClock clock;
  std::vector<FieldPlan> fields;            // in the order of the schema
  std::vector<const FieldPlan*> stacked;    // the fields of fixed shape
  std::vector<const FieldPlan*> converted;  // the fields that to_float converts on the host
  // By worker and by place in `converted`: the pixels of the sample that the worker loads.
  std::vector<std::vector<Buffer>> pixels;
  // Shared with the buffers that come back after the loader is gone.
  std::shared_ptr<ConsumerStream> consumer = std::make_shared<ConsumerStream>();
  BufferPool host_memory, device_memory;
  ByteBudget budget;
  std::int64_t predicted_bytes = 0;
  std::atomic<bool> stop{false};

 private:
  void reserve_pixels();
  void predict_memory();
  void record_left_out();
};

}  // namespace millrace::detail
