// The first frame of a GIF. A reader of our own, because only palette indexes tell what Pillow
// tells: the colour under a transparent pixel, and what lies outside of a small first frame.
#include "image_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace millrace {
namespace {

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  int byte() {
    if (at_ >= bytes_.size()) return ok_ = false, 0;
    return raw(bytes_)[at_++];
  }
  int word() {
    int low = byte();
    return low | byte() << 8;
  }
  Bytes take(std::size_t count) {
    if (count > bytes_.size() - at_) return ok_ = false, Bytes();
    Bytes result = bytes_.subspan(at_, count);
    at_ += count;
    return result;
  }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

struct Frame {
  int left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  int transparent = -1;
  Bytes palette{};
};

// Up to and including the descriptor of the first image. False: there is none.
bool find_frame(ByteReader& in, Frame& frame, Bytes& global_palette) {
  in.take(10);
  const int flags = in.byte();
  in.take(2);
  if ((flags & 0x80) != 0) global_palette = in.take(3U << ((flags & 7) + 1));
  while (in.ok()) {
    const int block = in.byte();
    if (block == 0x21) {
      const int label = in.byte();
      for (int size = in.byte(); in.ok() && size > 0; size = in.byte()) {
        Bytes body = in.take(static_cast<std::size_t>(size));
        if (label == 0xF9 && body.size() >= 4) {
          frame.transparent = (raw(body)[0] & 1) != 0 ? raw(body)[3] : -1;
        }
      }
    } else if (block == 0x2C) {
      frame.left = in.word();
      frame.top = in.word();
      frame.width = in.word();
      frame.height = in.word();
      const int local = in.byte();
      frame.interlaced = (local & 0x40) != 0;
      frame.palette = (local & 0x80) != 0 ? in.take(3U << ((local & 7) + 1)) : global_palette;
      return in.ok();
    } else if (block == 0x3B) {
      return false;
    }
  }
  return false;
}

// Variable-length codes out of sub-blocks, least significant bit first.
class CodeReader {
 public:
  explicit CodeReader(ByteReader& in) : in_(in) {}
  // -1 at the end of the data.
  int next(int bits) {
    while (held_ < bits) {
      if (left_ == 0) {
        left_ = in_.byte();
        if (left_ == 0) return -1;
      }
      const int byte = in_.byte();
      if (!in_.ok()) return -1;
      bits_ |= static_cast<std::uint32_t>(byte) << held_;
      held_ += 8;
      --left_;
    }
    const int code = static_cast<int>(bits_ & ((1U << bits) - 1));
    bits_ >>= bits;
    held_ -= bits;
    return code;
  }

 private:
  ByteReader& in_;
  int left_ = 0;
  std::uint32_t bits_ = 0;
  int held_ = 0;
};

// LZW. Returns how many indexes were decoded.
std::size_t unpack(ByteReader& in, std::vector<std::uint8_t>& indexes) {
  constexpr int table_size = 4096;
  std::array<std::uint16_t, table_size> prefix{};
  std::array<std::uint8_t, table_size> suffix{};
  std::array<std::uint8_t, table_size + 1> stack{};
  const int start_bits = in.byte();
  if (start_bits < 1 || start_bits > 11) return 0;  // more than 8 is wrong, but exists
  const int clear = 1 << start_bits;
  for (int i = 0; i < clear; ++i)
    suffix[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  CodeReader codes(in);
  int bits = start_bits + 1, next = clear + 2, previous = -1, first = 0;
  std::size_t done = 0;
  while (done < indexes.size()) {
    const int code = codes.next(bits);
    if (code < 0 || code == clear + 1) break;
    if (code == clear) {
      bits = start_bits + 1;
      next = clear + 2;
      previous = -1;
      continue;
    }
    if (code > next || (code == next && previous < 0)) break;
    std::size_t depth = 0;
    int at = code;
    if (code >= next) {
      stack[depth++] = static_cast<std::uint8_t>(first);
      at = previous;
    }
    for (; at >= clear; at = prefix[static_cast<std::size_t>(at)]) {
      stack[depth++] = suffix[static_cast<std::size_t>(at)];
    }
    first = at;
    stack[depth++] = static_cast<std::uint8_t>(first);
    while (depth > 0 && done < indexes.size()) indexes[done++] = stack[--depth];
    if (previous >= 0 && next < table_size) {
      prefix[static_cast<std::size_t>(next)] = static_cast<std::uint16_t>(previous);
      suffix[static_cast<std::size_t>(next)] = static_cast<std::uint8_t>(first);
      if (++next == 1 << bits && bits < 12) ++bits;
    }
    previous = code;
  }
  return done;
}

// The stored row that is shown as row `y` of an interlaced frame comes from one of four passes.
std::vector<int> shown_rows(const Frame& frame) {
  std::vector<int> order;
  if (!frame.interlaced) {
    for (int y = 0; y < frame.height; ++y) order.push_back(y);
    return order;
  }
  constexpr int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass) {
    for (int y = starts[pass]; y < frame.height; y += steps[pass]) order.push_back(y);
  }
  return order;
}

using Palette = std::array<std::array<std::uint8_t, 4>, 256>;

// Without any palette indexes are grey levels.
Palette rgba_palette(const Frame& frame) {
  Palette table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto level = static_cast<std::uint8_t>(frame.palette.empty() ? i : 0);
    table[i] = {level, level, level, 255};
    if (3 * i + 2 < frame.palette.size()) {
      std::memcpy(table[i].data(), raw(frame.palette) + 3 * i, 3);
    }
  }
  if (frame.transparent >= 0) table[static_cast<std::size_t>(frame.transparent)][3] = 0;
  return table;
}

void paint(const Frame& frame, const std::vector<std::uint8_t>& indexes, const Palette& palette,
           const Header& header, std::size_t stride, std::uint8_t* canvas) {
  // Where the frame does not reach, the canvas has the transparent colour, or the first.
  const auto& outside = palette[static_cast<std::size_t>(std::max(frame.transparent, 0))];
  for (std::int64_t y = 0; y < header.height; ++y) {
    std::uint8_t* row = canvas + static_cast<std::size_t>(y) * stride;
    for (std::int64_t x = 0; x < header.width; ++x) std::memcpy(row + 4 * x, outside.data(), 4);
  }
  const std::vector<int> order = shown_rows(frame);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t y = frame.top + order[i];
    const std::uint8_t* from = indexes.data() + i * static_cast<std::size_t>(frame.width);
    std::uint8_t* to =
        canvas + static_cast<std::size_t>(y) * stride + std::ptrdiff_t{4} * frame.left;
    for (std::int64_t x = 0; x < frame.width; ++x)
      std::memcpy(to + 4 * x, palette[from[x]].data(), 4);
  }
}

}  // namespace

Status read_gif_header(Bytes bytes, Header& header) {
  ByteReader size(bytes);
  size.take(6);
  const std::int64_t width = size.word(), height = size.word();
  ByteReader in(bytes);
  Frame frame;
  Bytes global_palette;
  if (!find_frame(in, frame, global_palette)) {
    return damaged_error(ImageFormat::gif, "it has no image in it");
  }
  // A frame that is larger than its screen enlarges it.
  header.width = std::max<std::int64_t>(width, frame.left + frame.width);
  header.height = std::max<std::int64_t>(height, frame.top + frame.height);
  header.channels = 4;
  return {};
}

Status read_gif(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                Damage& damage) {
  ByteReader in(bytes);
  Frame frame;
  Bytes global_palette;
  if (!find_frame(in, frame, global_palette)) {
    return damaged_error(ImageFormat::gif, "it has no image in it");
  }
  std::vector<std::uint8_t> indexes(static_cast<std::size_t>(frame.width) *
                                    static_cast<std::size_t>(frame.height));
  if (unpack(in, indexes) < indexes.size()) {
    damage = in.ok() ? "its codes are broken" : "the file ends too early";
    if (!request.tolerant) return damaged_error(ImageFormat::gif, damage);
  }
  const std::size_t stride = static_cast<std::size_t>(header.width) * 4 + row_padding;
  std::uint8_t* canvas = Scratch::ensure(Scratch::of_this_thread().raster,
                                         stride * static_cast<std::size_t>(header.height));
  paint(frame, indexes, rgba_palette(frame), header, stride, canvas);
  send_raster(canvas, stride, 4, request.region, sink);
  return {};
}

}  // namespace millrace
