// Private to the loader: what a Batch shows, as the slot fills it.
#pragma once

#include <millrace/pipeline/array.h>
#include <millrace/pipeline/device.h>
#include <millrace/pipeline/sampler.h>
#include <millrace/pipeline/schema.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

struct BatchData {
  const Schema* schema = nullptr;
  Step step;
  std::vector<std::int64_t> indices;
  // By field; empty where a field has no such form.
  std::vector<Array> arrays;
  std::vector<Array> lengths;
  std::vector<std::vector<Array>> lists;
  std::vector<std::vector<std::string_view>> texts;
  // On a device: when the data is there, and the stream that the consumer reads it on.
  Device* device = nullptr;
  FencePtr ready;
  std::atomic<void*> stream{nullptr};
  std::atomic<bool> waited{false};

  // Lets go of all memory that the consumer could have kept.
  void clear() {
    for (auto& array : arrays) array = Array();
    for (auto& array : lengths) array = Array();
    for (auto& list : lists) list.clear();
    for (auto& list : texts) list.clear();
    indices.clear();
    ready.reset();
    stream = nullptr;
    waited = false;
  }
};

}  // namespace millrace
