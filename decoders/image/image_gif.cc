// The first frame of a GIF, with its transparency. The canvas is Pillow's: see gif_file.h.
#include "image_reader.h"

#include <millrace/decoders/gif/gif_file.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace millrace::detail {
namespace {

using Palette = std::array<std::array<std::uint8_t, 4>, 256>;

// Without a palette, an index is a grey level.
Palette rgba_palette(const GifFrame& frame) {
  Palette table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto level = static_cast<std::uint8_t>(frame.palette.empty() ? i : 0);
    table[i] = {level, level, level, 255};
    if (3 * i + 2 < frame.palette.size()) {
      std::memcpy(table[i].data(), frame.palette.data() + 3 * i, 3);
    }
  }
  if (frame.transparent >= 0) table[static_cast<std::size_t>(frame.transparent)][3] = 0;
  return table;
}

struct Canvas {
  std::uint8_t* pixels;
  std::size_t stride;
  std::int64_t width, height;

  std::uint8_t* at(std::int64_t x, std::int64_t y) const {
    return pixels + static_cast<std::size_t>(y) * stride + 4 * x;
  }
};

// There may be fewer `indexes` than pixels in the frame: the rest gets the colour of the canvas.
void paint(const GifFrame& frame, std::span<const std::uint8_t> indexes, const Canvas& canvas) {
  const Palette palette = rgba_palette(frame);
  // Outside the frame, the canvas has the transparent colour, or else the first one.
  const auto& outside = palette[static_cast<std::size_t>(std::max(frame.transparent, 0))];
  for (std::int64_t y = 0; y < canvas.height; ++y) {
    for (std::int64_t x = 0; x < canvas.width; ++x) std::memcpy(canvas.at(x, y), &outside, 4);
  }
  GifRowOrder order(frame.height, frame.interlaced);
  const auto width = static_cast<std::size_t>(frame.width);
  for (int line = 0; line < frame.height && !indexes.empty(); ++line) {
    std::uint8_t* to = canvas.at(frame.x, frame.y + order.next());
    const auto row = indexes.subspan(0, std::min(width, indexes.size()));
    for (std::size_t x = 0; x < row.size(); ++x) std::memcpy(to + 4 * x, &palette[row[x]], 4);
    indexes = indexes.subspan(row.size());
  }
}

Status parse(Bytes bytes, GifFile& file) {
  Status status = parse_gif({raw(bytes), bytes.size()}, {}, file, true);
  if (status.ok()) return status;
  return damaged_error(ImageFormat::gif, status.error().reason());
}

}  // namespace

Status read_gif_header(Bytes bytes, Header& header) {
  GifFile file;
  if (Status status = parse(bytes, file); !status.ok()) return status;
  header.width = file.width;
  header.height = file.height;
  header.channels = 4;
  return {};
}

Status read_gif(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                Damage& damage) {
  GifFile file;
  if (Status status = parse(bytes, file); !status.ok()) return status;
  const GifFrame& frame = file.frames.front();
  const auto count = static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(frame.height);
  LzwDecoder lzw;
  const std::span<const std::uint8_t> indexes = lzw.decode(frame.data, count);
  if (indexes.size() < count) {
    const bool cut = frame.data.data() + frame.data.size() == raw(bytes) + bytes.size();
    damage = cut ? "the file ends too early" : "its codes are broken";
    if (!request.tolerant) return damaged_error(ImageFormat::gif, damage);
  }
  const std::size_t stride = static_cast<std::size_t>(header.width) * 4 + row_padding;
  std::uint8_t* pixels = Scratch::ensure(Scratch::of_this_thread().raster,
                                         stride * static_cast<std::size_t>(header.height));
  paint(frame, indexes, {pixels, stride, header.width, header.height});
  send_raster(pixels, stride, 4, request.region, sink);
  return {};
}

}  // namespace millrace::detail
