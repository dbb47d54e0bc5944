// Private: the interface through which rows of pixels go from a decoder to their destination: in
// bands that are still in the cache, through a chain of sinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::detail {

// Columns [x0, x1) and rows [y0, y1).
struct Region {
  std::int64_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  std::int64_t width() const { return x1 - x0; }
  std::int64_t height() const { return y1 - y0; }
};

// Vector code reads whole registers: this many bytes after the last pixel of a row must be
// readable.
constexpr std::size_t row_padding = 64;

class RowSink {
 public:
  virtual ~RowSink() = default;
  // Receives the next `count` rows; the memory is valid during the call only.
  virtual void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) = 0;
};

// Buffers that each thread reuses from picture to picture, so that decoding does not allocate.
struct Scratch {
  std::vector<std::uint8_t> band;    // rows from a decoder
  std::vector<std::uint8_t> raster;  // a whole picture, for formats that cannot be read in rows
  std::vector<std::uint8_t> turned, shown;  // a whole picture before and after orientation
  std::vector<std::uint8_t> converted;
  std::vector<std::uint8_t> ring, out, placed;
  std::vector<const std::uint8_t*> taps;

  static Scratch& of_this_thread();
  // Returns at least `bytes` bytes of undefined content.
  static std::uint8_t* ensure(std::vector<std::uint8_t>& memory, std::size_t bytes) {
    if (memory.size() < bytes) {
      memory.clear();  // so that growing copies nothing
      memory.resize(bytes);
    }
    return memory.data();
  }
  // Frees buffers that one huge picture has made too large.
  void trim();
};

}  // namespace millrace::detail
