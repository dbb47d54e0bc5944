// The parts of a plan besides options: the hash of the sources and the integer type of tokens.
#include "checksum.h"

#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/pipeline/base/error.h>

#include <cstring>

namespace millrace {

using namespace detail;

DType smallest_dtype(std::int64_t vocabulary, bool with_negative) {
  if (vocabulary < 1) {
    throw Error("a vocabulary has at least one token, not " + std::to_string(vocabulary))
        .kind(ErrorKind::usage);
  }
  std::int64_t last = vocabulary - 1;
  if (with_negative) {
    if (last <= INT8_MAX) return DType::int8;
    if (last <= INT16_MAX) return DType::int16;
    return last <= INT32_MAX ? DType::int32 : DType::int64;
  }
  if (last <= UINT8_MAX) return DType::uint8;
  if (last <= UINT16_MAX) return DType::uint16;
  return last <= UINT32_MAX ? DType::uint32 : DType::uint64;
}

struct SourceFingerprint::State {
  Checksum checksum;
  std::int64_t count = 0;
};

SourceFingerprint::SourceFingerprint() : state_(std::make_unique<State>()) {}
SourceFingerprint::~SourceFingerprint() = default;

void SourceFingerprint::add(const CacheSource& source) {
  // With the length, "ab","c" and "a","bc" have different hashes.
  std::int64_t numbers[] = {static_cast<std::int64_t>(source.name.size()), source.bytes,
                            source.time_ns};
  state_->checksum.add(std::as_bytes(std::span(numbers)));
  state_->checksum.add(std::as_bytes(std::span(source.name)));
  ++state_->count;
}

std::string SourceFingerprint::value() const {
  return std::to_string(state_->count) + " sources, " + to_hex(state_->checksum.value());
}

}  // namespace millrace
