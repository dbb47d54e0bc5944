// Private. How rows of pixels travel from a decoder to their destination: in bands that are still
// in the cache, through a chain of sinks.
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

// Vector code reads whole registers: this many bytes after a row's last pixel must be readable.
constexpr std::size_t row_padding = 64;

class RowSink {
 public:
  virtual ~RowSink() = default;
  // The next `count` rows; borrowed until the call returns.
  virtual void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) = 0;
};

// Memory that a thread keeps from picture to picture, so that a warm loader does not allocate.
struct Scratch {
  std::vector<std::uint8_t> band;    // rows as they leave a decoder
  std::vector<std::uint8_t> raster;  // a whole picture, where a format cannot be read in rows
  std::vector<std::uint8_t> turned, shown;  // a whole picture before and after it is turned
  std::vector<std::uint8_t> converted;
  std::vector<std::uint8_t> ring, out, placed;
  std::vector<const std::uint8_t*> taps;

  static Scratch& of_this_thread();
  // At least `bytes`; what they hold is undefined.
  static std::uint8_t* ensure(std::vector<std::uint8_t>& memory, std::size_t bytes) {
    if (memory.size() < bytes) {
      memory.clear();  // nothing to copy while it grows
      memory.resize(bytes);
    }
    return memory.data();
  }
  // Gives back what one huge picture left behind.
  void trim();
};

}  // namespace millrace::detail
