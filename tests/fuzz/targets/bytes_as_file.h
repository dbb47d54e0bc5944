// For targets that open files: the input as a file in memory, and reading every byte of a sample,
// so that a sanitizer sees where they lie.
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace millrace {

class BytesAsFile {
 public:
  BytesAsFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", 0)) {
    while (size > 0) {
      ssize_t written = ::write(file_, data, size);
      if (written <= 0) std::abort();
      data += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  ~BytesAsFile() { ::close(file_); }
  BytesAsFile(const BytesAsFile&) = delete;
  BytesAsFile& operator=(const BytesAsFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

inline void touch_sample(const Dataset& dataset, std::int64_t row, Sample& sample) {
  sample.restart();
  if (!dataset.load(row, {.index = row}, sample).ok()) return;
  if (sample.first_unfilled() >= 0) std::abort();
  volatile unsigned sum = 0;
  for (int field = 0; field < dataset.schema().size(); ++field) {
    const Array& value = sample.value(field);
    if (!dataset.schema()[field].shape.admits(value.shape())) std::abort();
    for (std::size_t i = 0; i < value.bytes(); ++i) {
      sum = sum + static_cast<unsigned>(value.data()[i]);
    }
  }
}

}  // namespace millrace
