#include "pixel_convert.h"

#include <algorithm>
#include <cstring>

namespace millrace::detail {
namespace {

// Blocks of this many pixels a side keep both sides of a transposition in the cache.
constexpr std::int64_t block = 32;

struct Pixel {
  std::uint8_t rgb[3];
  std::uint8_t alpha;
};

template <int from>
Pixel load(const std::uint8_t* p) {
  if constexpr (from == 1) return {{p[0], p[0], p[0]}, 255};
  if constexpr (from == 2) return {{p[0], p[0], p[0]}, p[1]};
  if constexpr (from == 3) return {{p[0], p[1], p[2]}, 255};
  if constexpr (from == 4) return {{p[0], p[1], p[2]}, p[3]};
}

template <int to>
void store(const Pixel& pixel, std::uint8_t* out) {
  if constexpr (to == 1) {
    out[0] = luma(pixel.rgb[0], pixel.rgb[1], pixel.rgb[2]);  // does not change grey
  } else {
    std::copy(pixel.rgb, pixel.rgb + 3, out);
    if constexpr (to == 4) out[3] = pixel.alpha;
  }
}

template <int from, int to>
void convert(const ChannelRule& rule, const std::uint8_t* in, std::int64_t pixels,
             std::uint8_t* out) {
  for (std::int64_t i = 0; i < pixels; ++i, in += from, out += to) {
    Pixel pixel = load<from>(in);
    if (rule.composite && from % 2 == 0) {
      for (int c = 0; c < 3; ++c) {
        // One rounding for the sum, as Pillow's paste with a mask.
        int sum = pixel.rgb[c] * pixel.alpha + rule.background[c] * (255 - pixel.alpha) + 128;
        pixel.rgb[c] = static_cast<std::uint8_t>(((sum >> 8) + sum) >> 8);
      }
      pixel.alpha = 255;
    }
    store<to>(pixel, out);
  }
}

template <int from>
void convert_from(const ChannelRule& rule, const std::uint8_t* in, std::int64_t pixels,
                  std::uint8_t* out) {
  if (rule.to == 1) return convert<from, 1>(rule, in, pixels, out);
  if (rule.to == 3) return convert<from, 3>(rule, in, pixels, out);
  convert<from, 4>(rule, in, pixels, out);
}

template <int channels>
void orient(int orientation, const std::uint8_t* from, std::size_t stride, std::int64_t width,
            std::int64_t height, std::uint8_t* to) {
  const bool swap = orientation >= 5;
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  // The strides in `to` for a step to the right and a step down in `from`.
  const std::int64_t out_width = swap ? height : width;
  const std::int64_t right = (swap ? out_width : 1) * (mirror_x ? -1 : 1);
  const std::int64_t down = (swap ? 1 : out_width) * (mirror_y ? -1 : 1);
  const std::int64_t origin =
      (mirror_x ? -right * (width - 1) : 0) + (mirror_y ? -down * (height - 1) : 0);
  for (std::int64_t y0 = 0; y0 < height; y0 += block) {
    for (std::int64_t x0 = 0; x0 < width; x0 += block) {
      for (std::int64_t y = y0; y < std::min(y0 + block, height); ++y) {
        const std::uint8_t* in = from + static_cast<std::size_t>(y) * stride + x0 * channels;
        std::uint8_t* out = to + (origin + y * down + x0 * right) * channels;
        for (std::int64_t x = x0; x < std::min(x0 + block, width); ++x) {
          std::memcpy(out, in, channels);
          in += channels;
          out += right * channels;
        }
      }
    }
  }
}

}  // namespace

void premultiply(std::uint8_t* row, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i, row += 4) {
    for (int c = 0; c < 3; ++c) row[c] = multiply_255(row[c], row[3]);
  }
}

void unpremultiply(std::uint8_t* row, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i, row += 4) {
    const int alpha = row[3];
    if (alpha == 0 || alpha == 255) continue;
    for (int c = 0; c < 3; ++c) {
      row[c] = static_cast<std::uint8_t>(std::min(255 * row[c] / alpha, 255));
    }
  }
}

void convert_row(const ChannelRule& rule, const std::uint8_t* from, std::int64_t pixels,
                 std::uint8_t* to) {
  if (rule.from == rule.to && !rule.composite) {
    std::memcpy(to, from, static_cast<std::size_t>(pixels * rule.to));
    return;
  }
  if (rule.from == 1) return convert_from<1>(rule, from, pixels, to);
  if (rule.from == 2) return convert_from<2>(rule, from, pixels, to);
  if (rule.from == 3) return convert_from<3>(rule, from, pixels, to);
  convert_from<4>(rule, from, pixels, to);
}

void orient_pixels(int orientation, const std::uint8_t* from, std::size_t stride,
                   std::int64_t width, std::int64_t height, int channels, std::uint8_t* to) {
  if (channels == 1) return orient<1>(orientation, from, stride, width, height, to);
  if (channels == 3) return orient<3>(orientation, from, stride, width, height, to);
  orient<4>(orientation, from, stride, width, height, to);
}

}  // namespace millrace::detail
