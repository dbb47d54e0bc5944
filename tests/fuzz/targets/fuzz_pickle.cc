// Any bytes as the pickle of a checkpoint whose records are all there, 64 bytes each: a value or an
// error. What was read can be written, and is the same when it is read again.
#include "tests/fuzz/targets/checkpoint_target.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/unpickler.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const std::string pickle(reinterpret_cast<const char*>(data), size);
  Value value;
  try {
    value = detail::Unpickler(pickle, [](const std::string& record) {
              TensorStorage storage = TensorStorage::allocate(64);
              std::memset(storage.data(), static_cast<unsigned char>(record.back()), 64);
              return storage;
            }).read();
  } catch (const Error&) {
    return 0;
  }
  touch_value(value);
  const detail::Pickle written = detail::PickleWriter::write(value);
  // "data/3" is the fourth storage.
  const Value again = detail::Unpickler(written.bytes, [&](const std::string& record) {
                        return written.storages.at(std::stoul(record.substr(5)));
                      }).read();
  expect_same(written, again);
  return 0;
}
