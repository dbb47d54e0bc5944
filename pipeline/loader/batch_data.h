// Private to the loader: what a Batch shows, as the slot fills it.
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/schema.h>
#include <millrace/pipeline/device/device.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/order/sampler.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

// The stream that the consumer last waited on, if it did: its work reads our device memory.
struct ConsumerStream {
  std::atomic<void*> stream{nullptr};
  std::atomic<bool> used{false};

  // Done when all that reads device memory now is done; null if nothing does.
  FencePtr record(Device& device) const {
    return used.load() ? device.record(stream.load()) : nullptr;
  }
};

// How a field is shown: as declared, collated from samples of several shapes, or one by one.
enum class FieldForm { stacked, collated, list };

struct BatchData {
  const Schema* schema = nullptr;
  Step step;
  std::int64_t rows = 0;     // step.rows, without those that were dropped
  std::int64_t wrapped = 0;  // step.wrapped, likewise
  // Of the fields that were collated from samples of several shapes, and what of them is padding.
  std::int64_t collated_bytes = 0, padding_bytes = 0;
  std::vector<std::int64_t> indices;
  std::vector<BadSample> dropped;
  std::vector<FieldForm> forms;
  // By field; empty where a field has no such form.
  std::vector<Array> arrays;
  std::vector<Array> lengths;
  std::vector<std::vector<Array>> lists;
  std::vector<std::vector<std::string_view>> texts;
  // On a device: when the data is there, and what the consumer reads it on.
  Device* device = nullptr;
  FencePtr ready;
  ConsumerStream* consumer = nullptr;

  // Lets go of all memory that the consumer could have kept.
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

}  // namespace millrace
