// Private: GIF's LZW compression.
//
// Note [LZW by copying]. Each new string of the decoder is the string before it plus one byte, and
// both are adjacent in the output. So a code need not be a chain of bytes: it is an offset in the
// output and a length, and decoding a code is a copy from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::detail {

class LzwDecoder {
 public:
  // `data` starts with the minimum code size, followed by sub-blocks. Returns `count` bytes, valid
  // until the next call, or fewer if the data ends early or is broken.
  std::span<const std::uint8_t> decode(std::span<const std::uint8_t> data, std::size_t count);

 private:
  struct Entry {
    std::uint32_t offset;
    std::uint32_t length;
  };
  void join_blocks(std::span<const std::uint8_t> data);

  std::vector<std::uint8_t> joined_;  // the sub-blocks without their lengths
  std::vector<std::uint8_t> output_;  // all single bytes first, so that every code is an offset
  std::vector<Entry> entries_;
};

// Appends the minimum code size and the sub-blocks of `pixels`, the last one empty.
void lzw_encode(std::span<const std::uint8_t> pixels, int bits, std::vector<std::uint8_t>& out);

}  // namespace millrace::detail
