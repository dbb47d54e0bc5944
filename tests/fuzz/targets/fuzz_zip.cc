// Any bytes as the archive of a checkpoint: its records or an error, and never more bytes than the
// file has.
#include "tests/fuzz/targets/bytes_as_file.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/zip_reader.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  BytesAsFile file(data, size);
  try {
    const detail::ZipReader archive(file.path());
    std::uint64_t total = 0;
    for (const std::string& name : archive.names()) {
      total += archive.size(name);
      try {
        if (archive.read(name).size() != archive.size(name)) std::abort();
      } catch (const Error&) {
      }
    }
    if (total > size) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
