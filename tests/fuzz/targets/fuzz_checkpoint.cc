// Any bytes as a checkpoint: a value or an error. What was read can be written, and is the same
// when it is read again. Seeds without checksums let damage reach the pickle.
#include "tests/fuzz/targets/bytes_as_file.h"
#include "tests/fuzz/targets/checkpoint_target.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/archive.h>
#include <millrace/training/checkpoint/checkpoint.h>

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  BytesAsFile file(data, size);
  Value value;
  try {
    value = read_checkpoint(file.path());
  } catch (const Error&) {
    return 0;
  }
  touch_value(value);
  std::string written;
  detail::write_archive(value, [&](std::span<const std::byte> bytes) {
    written.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  BytesAsFile copy(reinterpret_cast<const std::uint8_t*>(written.data()), written.size());
  expect_same(detail::PickleWriter::write(value), read_checkpoint(copy.path()));
  return 0;
}
