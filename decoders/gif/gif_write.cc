#include "gif_lzw.h"
#include "gif_palette.h"

#include <millrace/decoders/gif/gif_write.h>
#include <millrace/pipeline/base/durable_file.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

namespace millrace {

using namespace detail;

namespace {

class FrameReader {
 public:
  FrameReader(std::span<const std::uint8_t> pixels, const GifFrames& shape)
      : pixels_(pixels),
        plane_(static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width)),
        frames_(static_cast<std::size_t>(shape.frames)),
        channels_(static_cast<std::size_t>(shape.channels)),
        planar_(shape.layout == ClipLayout::cthw) {}

  Colour at(std::size_t frame, std::size_t pixel) const {
    auto value = [&](std::size_t c) {
      c = std::min(c, channels_ - 1);
      return pixels_[planar_ ? (c * frames_ + frame) * plane_ + pixel
                             : (frame * plane_ + pixel) * channels_ + c];
    };
    return {value(0), value(1), value(2)};
  }
  std::size_t plane() const { return plane_; }
  std::size_t frames() const { return frames_; }

 private:
  std::span<const std::uint8_t> pixels_;
  std::size_t plane_, frames_, channels_;
  bool planar_;
};

// Floyd-Steinberg error diffusion in serpentine order, which avoids worm-like patterns.
class Ditherer {
 public:
  Ditherer(NearestColour& nearest, std::size_t width, bool dither)
      : nearest_(nearest), width_(width), dither_(dither), here_(width + 2), below_(width + 2) {}

  void frame(const FrameReader& in, std::size_t number, std::vector<std::uint8_t>& out) {
    std::ranges::fill(here_, Error3{});
    for (std::size_t y = 0; y < in.plane() / width_; ++y) {
      std::ranges::fill(below_, Error3{});
      for (std::size_t i = 0; i < width_; ++i) {
        const std::size_t x = y % 2 == 0 ? i : width_ - 1 - i;
        out[y * width_ + x] = pixel(in.at(number, y * width_ + x), x, y % 2 == 0);
      }
      std::swap(here_, below_);
    }
  }

 private:
  using Error3 = std::array<int, 3>;  // in sixteenths

  std::uint8_t pixel(Colour colour, std::size_t x, bool forward) {
    const Error3& carried = here_[x + 1];
    const int values[3] = {std::clamp(colour.red + carried[0] / 16, 0, 255),
                           std::clamp(colour.green + carried[1] / 16, 0, 255),
                           std::clamp(colour.blue + carried[2] / 16, 0, 255)};
    const std::uint8_t index = nearest_.find(values[0], values[1], values[2]);
    if (!dither_) return index;
    const Colour& chosen = nearest_.palette()[index];
    const int got[3] = {chosen.red, chosen.green, chosen.blue};
    const std::size_t ahead = forward ? x + 2 : x, behind = forward ? x : x + 2;
    for (std::size_t c = 0; c < 3; ++c) {
      // Only three quarters of the error: all of it makes flat areas flicker from frame to frame.
      const int error = (values[c] - got[c]) * 3 / 4;
      here_[ahead][c] += 7 * error;
      below_[behind][c] += 3 * error;
      below_[x + 1][c] += 5 * error;
      below_[ahead][c] += error;
    }
    return index;
  }

  NearestColour& nearest_;
  std::size_t width_;
  bool dither_;
  std::vector<Error3> here_, below_;
};

void put16(std::vector<std::uint8_t>& out, int value) {
  out.push_back(static_cast<std::uint8_t>(value & 255));
  out.push_back(static_cast<std::uint8_t>(value >> 8 & 255));
}

void put_bytes(std::vector<std::uint8_t>& out, std::initializer_list<int> bytes) {
  for (int byte : bytes) out.push_back(static_cast<std::uint8_t>(byte));
}

void put_header(std::vector<std::uint8_t>& out, const GifFrames& shape,
                const std::vector<Colour>& palette, int bits, int loops) {
  for (char letter : std::string("GIF89a")) out.push_back(static_cast<std::uint8_t>(letter));
  put16(out, shape.width);
  put16(out, shape.height);
  put_bytes(out, {0xF0 | (bits - 1), 0, 0});
  for (std::size_t i = 0; i < std::size_t{1} << bits; ++i) {
    const Colour colour = i < palette.size() ? palette[i] : Colour{};
    put_bytes(out, {colour.red, colour.green, colour.blue});
  }
  if (loops == 1 || shape.frames == 1) return;
  put_bytes(out, {'!', 0xFF, 11});
  for (char letter : std::string("NETSCAPE2.0")) out.push_back(static_cast<std::uint8_t>(letter));
  put_bytes(out, {3, 1});
  put16(out, loops == 0 ? 0 : loops - 1);  // the file stores the number of repetitions
  out.push_back(0);
}

Status check(std::span<const std::uint8_t> pixels, const GifFrames& shape,
             const GifWriteOptions& options) {
  auto usage = [](std::string reason) {
    return Error(std::move(reason)).stage("gif").kind(ErrorKind::usage);
  };
  if (shape.frames < 1 || shape.height < 1 || shape.width < 1 || shape.height > 65535 ||
      shape.width > 65535) {
    return usage("a GIF has 1 to 65535 pixels a side and at least one frame, but these are " +
                 std::to_string(shape.width) + " x " + std::to_string(shape.height) + " and " +
                 std::to_string(shape.frames));
  }
  if (shape.channels != 1 && shape.channels != 3) {
    return usage("`channels` must be 1 or 3, but is " + std::to_string(shape.channels));
  }
  if (!(options.frames_per_second > 0 && options.frames_per_second <= 100) || options.loops < 0 ||
      options.loops > 65536) {
    return usage("`frames_per_second` must be above 0 and at most 100, and `loops` 0 to 65536");
  }
  const std::int64_t needed =
      shape.frames * shape.height * std::int64_t{shape.width} * shape.channels;
  if (static_cast<std::size_t>(needed) != pixels.size()) {
    return usage("the frames must have " + std::to_string(needed) + " bytes, but have " +
                 std::to_string(pixels.size()));
  }
  return {};
}

}  // namespace

Status encode_gif(std::span<const std::uint8_t> pixels, const GifFrames& shape,
                  const GifWriteOptions& options, std::vector<std::uint8_t>& file) {
  file.clear();
  if (Status status = check(pixels, shape, options); !status.ok()) return status;
  const FrameReader in(pixels, shape);
  PaletteMaker maker;
  for (std::size_t frame = 0; frame < in.frames(); ++frame) {
    for (std::size_t pixel = 0; pixel < in.plane(); ++pixel) maker.add(in.at(frame, pixel));
  }
  NearestColour nearest(maker.make());
  const int bits = std::max(1, static_cast<int>(std::bit_width(nearest.palette().size() - 1)));
  put_header(file, shape, nearest.palette(), bits, options.loops);
  Ditherer ditherer(nearest, static_cast<std::size_t>(shape.width), options.dither);
  std::vector<std::uint8_t> indices(in.plane());
  auto hundredths = [&](std::size_t frame) {
    return std::llround(100.0 * static_cast<double>(frame) / options.frames_per_second);
  };
  for (std::size_t frame = 0; frame < in.frames(); ++frame) {
    const auto delay =
        std::clamp<std::int64_t>(hundredths(frame + 1) - hundredths(frame), 1, 65535);
    put_bytes(file, {'!', 0xF9, 4, 1 << 2});
    put16(file, static_cast<int>(delay));
    put_bytes(file, {0, 0, ',', 0, 0, 0, 0});
    put16(file, shape.width);
    put16(file, shape.height);
    file.push_back(0);
    ditherer.frame(in, frame, indices);
    lzw_encode(indices, bits, file);
  }
  file.push_back(';');
  return {};
}

Status write_gif(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                 const GifFrames& shape, const GifWriteOptions& options) {
  std::vector<std::uint8_t> file;
  if (Status status = encode_gif(pixels, shape, options, file); !status.ok()) {
    return status.error().at(path.string());
  }
  return try_write_durably(path, std::as_bytes(std::span(file)), "gif");
}

}  // namespace millrace
