// Private to the loader: the content of a Batch. A slot fills it, the consumer reads it.
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/schema.h>
#include <millrace/pipeline/device/device.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/loader/slot/field_plan.h>
#include <millrace/pipeline/order/sampler.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::detail {

// The stream passed to the last Batch::wait_on(). Work queued on it reads the loader's device
// memory.
struct ConsumerStream {
  std::atomic<void*> stream{nullptr};
  std::atomic<bool> used{false};

  // A fence that is done when the work queued now is done; null if no stream has been used.
  FencePtr record(Device& device) const {
    return used.load() ? device.record(stream.load()) : nullptr;
  }
};

struct BatchData {
  const Schema* schema = nullptr;
  Step step;
  std::int64_t rows = 0;     // step.rows without dropped rows
  std::int64_t wrapped = 0;  // step.wrapped without dropped rows
  // Size of the fields collated from samples of several shapes, and of the padding in them.
  std::int64_t collated_bytes = 0, padding_bytes = 0;
  std::vector<std::int64_t> indices;
  std::vector<BadSample> dropped;
  std::vector<FieldForm> forms;
  // By field; empty for a field of another form.
  std::vector<Array> arrays;
  std::vector<Array> lengths;
  std::vector<std::vector<Array>> lists;
  std::vector<std::vector<std::string_view>> texts;
  // With a device: `ready` is done when the data has been copied to it.
  Device* device = nullptr;
  FencePtr ready;
  ConsumerStream* consumer = nullptr;

  // Releases everything that refers to memory of the batch.
  void clear() {
    for (auto& array : arrays) array = Array();
    for (auto& array : lengths) array = Array();
    for (auto& list : lists) list.clear();
    for (auto& list : texts) list.clear();
    indices.clear();
    dropped.clear();
    ready.reset();
  }
};

}  // namespace millrace::detail
