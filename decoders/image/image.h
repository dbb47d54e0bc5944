// Decodes images: JPEG, PNG, WebP, the first frame of a GIF, and BMP, TIFF, PNM, TGA and others
// through libav. The format is found from the content, not from the file name.
//
//   ImageInfo info;
//   Status status = probe_image(bytes, info);
//   Array pixels = Array::empty(DType::uint8, {info.height, info.width, 3});
//   if (status.ok()) status = decode_image(bytes, {.channels = 3}, pixels);
//
// Limits are checked from the headers, before memory is allocated. An error has the format, the
// message of the decoding library and a hint; the caller adds the path with Error::at.
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/array.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

enum class ImageFormat : std::uint8_t {
  unknown,
  jpeg,
  png,
  webp,
  gif,
  bmp,
  tiff,
  pnm,
  tga,
  sgi,
  sun,
  pcx,
  dds,
  dpx,
  exr,
  psd,
  qoi,
  jpeg2000,
};

// "JPEG", "PNG", ...: the name in messages.
std::string_view name_of(ImageFormat format);

// The content of the headers.
struct ImageInfo {
  ImageFormat format = ImageFormat::unknown;
  std::int64_t width = 0;  // as shown, i.e. after the EXIF orientation is applied
  std::int64_t height = 0;
  int channels = 3;     // 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha
  int bits = 8;         // per channel, in the file
  int orientation = 1;  // EXIF orientation, 1 to 8
};

enum class AlphaRule : std::uint8_t {
  drop,       // alpha is ignored, as in Pillow's convert("RGB")
  composite,  // the image is blended with ImageOptions::background
};

struct ImageOptions {
  // 1: grey by ITU-R 601, as Pillow's convert("L"); 3: RGB; 4: RGBA, opaque if the file has no
  // alpha. Of channels with more than 8 bits the upper 8 are kept: scaled, not clipped.
  int channels = 3;
  AlphaRule alpha = AlphaRule::drop;  // for 1 and 3 channels; with 4 `drop` keeps alpha
  std::array<std::uint8_t, 3> background{255, 255, 255};
  bool orient = true;     // apply the EXIF orientation
  bool tolerant = false;  // decode damaged or truncated files as far as possible
  DecodeLimits limits{};
};

struct ImageResult {
  std::int64_t width = 0, height = 0;
  bool damaged = false;  // with `tolerant`: the file is damaged
  std::string damage{};  // the decoder's message about the damage
};

// Reads the headers only. Checks no limits except those on the size of the headers.
Status probe_image(std::span<const std::byte> bytes, ImageInfo& info);

// Fills `destination`, uint8 [height, width, channels] (or [height, width] for one channel), of the
// size that probe_image() returns. With `orient` off, orientations 5 to 8 swap width and height.
Status decode_image(std::span<const std::byte> bytes, const ImageOptions& options,
                    const Array& destination, ImageResult* result = nullptr);

}  // namespace millrace
