#include "gif_lzw.h"

#include <algorithm>
#include <cstring>

namespace millrace::detail {
namespace {

constexpr std::size_t max_codes = 4096;
constexpr std::size_t slack = 32;  // copies are whole words and may write past the end

// Both pointers are in the same buffer, `from` before `to`; bytes after `length` are undefined.
inline void copy_words(std::uint8_t* to, const std::uint8_t* from, std::size_t length) {
  std::size_t i = 0;
  do {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, 8);
    std::memcpy(to + i, &word, 8);
    i += 8;
  } while (i < length);
}

}  // namespace

void LzwDecoder::join_blocks(std::span<const std::uint8_t> data) {
  joined_.clear();
  std::size_t at = 1;
  while (at < data.size() && data[at] != 0) {
    const std::size_t length = std::min<std::size_t>(data[at], data.size() - at - 1);
    joined_.insert(joined_.end(), data.begin() + static_cast<std::ptrdiff_t>(at + 1),
                   data.begin() + static_cast<std::ptrdiff_t>(at + 1 + length));
    at += 1 + length;
  }
}

std::span<const std::uint8_t> LzwDecoder::decode(std::span<const std::uint8_t> data,
                                                 std::size_t count) {
  if (data.empty() || data[0] < 1 || data[0] > 11 || count == 0) return {};
  const unsigned bits = data[0];
  join_blocks(data);
  const std::size_t bytes = joined_.size();
  joined_.resize(bytes + 8);  // so that whole words can be read
  constexpr std::size_t singles = 2048;
  if (output_.size() < singles + count + max_codes + slack) {
    output_.resize(singles + count + max_codes + slack);
  }
  entries_.resize(max_codes);
  const unsigned clear = 1U << bits, end = clear + 1;
  for (unsigned i = 0; i < clear; ++i) {
    output_[i] = static_cast<std::uint8_t>(i);
    entries_[i] = {i, 1};
  }
  std::uint8_t* out = output_.data();
  const std::size_t first = singles, last = singles + count;
  std::size_t at = first, position = 0;
  const std::size_t total_bits = bytes * 8;
  unsigned width = bits + 1, next = end + 1;
  Entry previous{0, 0};
  while (at < last) {
    if (position + width > total_bits) break;
    std::uint64_t word = 0;
    std::memcpy(&word, joined_.data() + position / 8, 8);
    const unsigned code = static_cast<unsigned>(word >> (position % 8)) & ((1U << width) - 1);
    position += width;
    if (code == clear) {
      width = bits + 1;
      next = end + 1;
      previous = {0, 0};
      continue;
    }
    if (code == end) break;
    Entry entry{};
    if (code < next && (code < clear || previous.length > 0)) {
      entry = entries_[code];
    } else if (code == next && previous.length > 0 && next < max_codes) {
      entry = {previous.offset, previous.length + 1};  // the code that is being defined right now
    } else {
      break;
    }
    // A string has at most `max_codes` bytes, so it exceeds the end by no more than that.
    const bool is_new = code == next;
    copy_words(out + at, out + entry.offset, is_new ? entry.length - 1 : entry.length);
    if (is_new) out[at + entry.length - 1] = out[at];
    if (previous.length > 0 && next < max_codes) {
      entries_[next] = {previous.offset, previous.length + 1};
      ++next;
      if (next == (1U << width) && width < 12) ++width;
    }
    previous = {static_cast<std::uint32_t>(at), entry.length};
    at += entry.length;
  }
  return {out + first, std::min(at, last) - first};
}

namespace {

class BitWriter {
 public:
  explicit BitWriter(std::vector<std::uint8_t>& out) : out_(out) {}
  void put(unsigned code, unsigned width) {
    word_ |= std::uint64_t{code} << used_;
    for (used_ += width; used_ >= 8; used_ -= 8) {
      put_byte(static_cast<std::uint8_t>(word_));
      word_ >>= 8;
    }
  }
  void finish() {
    if (used_ > 0) put_byte(static_cast<std::uint8_t>(word_));
    flush();
    out_.push_back(0);
  }

 private:
  void put_byte(std::uint8_t byte) {
    block_[filled_++] = byte;
    if (filled_ == sizeof block_) flush();
  }
  void flush() {
    if (filled_ == 0) return;
    out_.push_back(static_cast<std::uint8_t>(filled_));
    out_.insert(out_.end(), block_, block_ + filled_);
    filled_ = 0;
  }

  std::vector<std::uint8_t>& out_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;
  std::uint8_t block_[255] = {};
  std::size_t filled_ = 0;
};

}  // namespace

void lzw_encode(std::span<const std::uint8_t> pixels, int bits, std::vector<std::uint8_t>& out) {
  const auto root_bits = static_cast<unsigned>(std::max(bits, 2));
  out.push_back(static_cast<std::uint8_t>(root_bits));
  BitWriter writer(out);
  const unsigned clear = 1U << root_bits, end = clear + 1;
  // children[code * 256 + byte]: the code of that string plus the byte; 0: none yet.
  std::vector<std::uint16_t> children(max_codes * 256);
  unsigned width = root_bits + 1, next = end + 1;
  writer.put(clear, width);
  if (!pixels.empty()) {
    unsigned code = pixels[0];
    for (std::size_t i = 1; i < pixels.size(); ++i) {
      std::uint16_t& child = children[code * 256 + pixels[i]];
      if (child != 0) {
        code = child;
        continue;
      }
      writer.put(code, width);
      if (next < max_codes) {
        child = static_cast<std::uint16_t>(next);
        if (next == (1U << width)) ++width;
        ++next;
      } else {
        writer.put(clear, width);
        std::ranges::fill(children, std::uint16_t{0});
        width = root_bits + 1;
        next = end + 1;
      }
      code = pixels[i];
    }
    writer.put(code, width);
    // The decoder defines one more string after that code, which may widen the end code.
    if (next < max_codes && next == (1U << width)) ++width;
  }
  writer.put(end, width);
  writer.finish();
}

}  // namespace millrace::detail
