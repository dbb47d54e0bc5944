#include "gif_file.h"

#include <algorithm>
#include <string>

namespace millrace::detail {
namespace {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool has(std::size_t n) const { return bytes_.size() - at_ >= n; }
  std::uint8_t u8() { return bytes_[at_++]; }
  int u16() {
    const int value = bytes_[at_] | bytes_[at_ + 1] << 8;
    at_ += 2;
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t n) {
    n = std::min(n, bytes_.size() - at_);
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  // The next sub-block; empty after the last one.
  std::span<const std::uint8_t> block() { return has(1) ? take(u8()) : take(0); }
  void skip_blocks() {
    while (!block().empty()) {
    }
  }
  std::size_t at() const { return at_; }
  std::span<const std::uint8_t> since(std::size_t start) const {
    return bytes_.subspan(start, at_ - start);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

std::span<const std::uint8_t> read_palette(ByteReader& in, int flags) {
  return in.take(std::size_t{3} << ((flags & 7) + 1));
}

struct Pending {
  int transparent = -1, disposal = 0, delay_ms = 0;
};

void read_extension(ByteReader& in, Pending& pending, int& loops) {
  if (!in.has(1)) return;
  const int kind = in.u8();
  auto block = in.block();
  if (kind == 0xF9 && block.size() >= 4) {
    pending.transparent = (block[0] & 1) != 0 ? block[3] : -1;
    pending.delay_ms = (block[1] | block[2] << 8) * 10;
    const int disposal = block[0] >> 2 & 7;
    if (disposal != 0) pending.disposal = disposal;
  } else if (kind == 0xFF && block.size() == 11 &&
             std::equal(block.begin(), block.end(), "NETSCAPE2.0")) {
    auto times = in.block();
    // The file stores the number of repetitions.
    if (times.size() >= 3 && times[0] == 1) {
      const int repeats = times[1] | times[2] << 8;
      loops = repeats == 0 ? 0 : repeats + 1;
    }
    if (times.empty()) return;
  }
  if (!block.empty()) in.skip_blocks();
}

bool read_image(ByteReader& in, std::span<const std::uint8_t> global, Pending& pending,
                GifFrame& frame) {
  if (!in.has(9)) return false;
  frame.x = in.u16();
  frame.y = in.u16();
  frame.width = in.u16();
  frame.height = in.u16();
  const int flags = in.u8();
  frame.interlaced = (flags & 0x40) != 0;
  frame.palette = (flags & 0x80) != 0 ? read_palette(in, flags) : global;
  frame.transparent = pending.transparent;
  frame.disposal = pending.disposal;
  frame.delay_ms = pending.delay_ms;
  if (!in.has(1)) return false;
  const std::size_t start = in.at();
  in.u8();
  in.skip_blocks();
  frame.data = in.since(start);
  pending.transparent = -1;
  pending.delay_ms = 0;
  return true;
}

}  // namespace

Status parse_gif(std::span<const std::uint8_t> bytes, const DecodeLimits& limits, GifFile& file,
                 bool first_only) {
  file.frames.clear();
  auto bad = [](std::string reason) { return Error(std::move(reason)).stage("gif"); };
  ByteReader in(bytes);
  if (bytes.empty()) return bad("the file is empty");
  if (!in.has(13) || !std::equal(bytes.begin(), bytes.begin() + 4, "GIF8")) {
    return bad("not a GIF file");
  }
  in.take(6);
  file.width = in.u16();
  file.height = in.u16();
  const int flags = in.u8();
  file.background = in.u8();
  in.u8();
  std::span<const std::uint8_t> global;
  if ((flags & 0x80) != 0) {
    global = read_palette(in, flags);
  } else {
    file.background = 0;
  }
  Pending pending;
  file.loops = 1;
  while (in.has(1) && !(first_only && !file.frames.empty())) {
    const int kind = in.u8();
    if (kind == ';') break;
    if (kind == '!') {
      read_extension(in, pending, file.loops);
    } else if (kind == ',') {
      GifFrame frame;
      if (!read_image(in, global, pending, frame)) break;
      file.frames.push_back(frame);
    }
  }
  if (file.frames.empty()) return bad("there is no image in the file");
  // A first frame larger than the screen makes the screen larger; later ones are cut.
  file.width = std::max(file.width, file.frames[0].x + file.frames[0].width);
  file.height = std::max(file.height, file.frames[0].y + file.frames[0].height);
  const std::int64_t pixels = std::int64_t{file.width} * file.height;
  if (pixels == 0) return bad("the image has no pixels");
  // Checked for later frames too: the part outside the screen is decompressed as well.
  std::int64_t largest = pixels;
  for (const GifFrame& frame : file.frames) {
    largest = std::max(largest, std::int64_t{frame.width} * frame.height);
  }
  if (largest > limits.frame_pixels && !first_only) {
    return bad("the number of pixels of a frame is " + std::to_string(largest) +
               ", more than the limit of " + std::to_string(limits.frame_pixels))
        .hint("Raise DecodeLimits::frame_pixels if you trust the file");
  }
  return {};
}

}  // namespace millrace::detail
