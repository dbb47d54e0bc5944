// Any bytes as a .npy file: rows or an error, never a read outside of the file.
#include "tests/fuzz/targets/bytes_as_file.h"

#include <millrace/datasets/arrays/memmap.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  BytesAsFile file(data, size);
  try {
    NpyDataset dataset(file.path());
    // Rows may be empty, and then there may be any number of them.
    if (dataset.schema()[0].shape.elements() > std::int64_t{1} << 30) return 0;
    Sample sample(dataset.schema());
    for (std::int64_t row = 0; row < std::min<std::int64_t>(dataset.size(), 64); ++row) {
      touch_sample(dataset, row, sample);
    }
    if (dataset.size() > 0) touch_sample(dataset, dataset.size() - 1, sample);
  } catch (const Error&) {
  }
  return 0;
}
