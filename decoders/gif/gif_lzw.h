// Private: the compression of GIF.
//
// Note [LZW by copying]. Each string that the decoder learns is the one before it and one more
// byte, and both stand next to each other in the output. So a code need not be a chain of bytes:
// it is a place in the output and a length, and decoding is copying from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::detail {

class LzwDecoder {
 public:
  // `data` starts with the minimum code size, followed by sub-blocks. Gives `count` bytes, valid
  // until the next call, or fewer if the data end before or are broken.
  std::span<const std::uint8_t> decode(std::span<const std::uint8_t> data, std::size_t count);

 private:
  struct Entry {
    std::uint32_t offset;
    std::uint32_t length;
  };
  void join_blocks(std::span<const std::uint8_t> data);

  std::vector<std::uint8_t> joined_;  // the sub-blocks without their lengths
  std::vector<std::uint8_t> output_;  // all single bytes first, so that every code is a place in it
  std::vector<Entry> entries_;
};

// The minimum code size and the sub-blocks of `pixels`, ended by an empty one.
void lzw_encode(std::span<const std::uint8_t> pixels, int bits, std::vector<std::uint8_t>& out);

}  // namespace millrace::detail
