// Any bytes as an Arrow file: rows or an error, never a read outside of the file.
#include "tests/fuzz/targets/bytes_as_file.h"

#include <millrace/datasets/arrow/arrow_dataset.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  BytesAsFile file(data, size);
  try {
    ArrowDataset dataset(file.path());
    Sample sample(dataset.schema());
    std::int64_t step = std::max<std::int64_t>(1, dataset.size() / 64);
    for (std::int64_t row = 0; row < dataset.size(); row += step) {
      touch_sample(dataset, row, sample);
    }
  } catch (const Error&) {
  }
  return 0;
}
