// Images: JPEG, PNG, WebP, the first frame of a GIF, and BMP, TIFF, PNM, TGA and others through
// libav. The bytes say which; a file's name does not matter.
//
//   ImageInfo info;
//   if (Status status = probe_image(bytes, info); !status.ok()) return status;
//   Array pixels = Array::empty(DType::uint8, {info.height, info.width, 3});
//   Status status = decode_image(bytes, {.channels = 3}, pixels);
//
// Every limit is checked from the headers, before memory is taken. An error names the medium, the
// decoder's own message and a hint; who knows the path adds it with Error::at.
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

// "JPEG", "PNG", ... as it stands in messages.
std::string_view name_of(ImageFormat format);

// What the headers say.
struct ImageInfo {
  ImageFormat format = ImageFormat::unknown;
  std::int64_t width = 0;  // as shown, i.e. after the orientation is applied
  std::int64_t height = 0;
  int channels = 3;     // 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha
  int bits = 8;         // per channel, in the file
  int orientation = 1;  // EXIF's, 1 to 8
};

enum class AlphaRule : std::uint8_t {
  drop,       // colours stay as they are stored, as with Pillow's convert("RGB")
  composite,  // laid over ImageOptions::background
};

struct ImageOptions {
  // 1: grey by ITU-R 601, as Pillow's convert("L"); 3: RGB; 4: RGBA, opaque where the file has no
  // alpha. Channels of more than 8 bits keep their upper 8: scaled, never clipped to white.
  int channels = 3;
  AlphaRule alpha = AlphaRule::drop;  // for 1 and 3 channels; with 4 `drop` keeps alpha
  std::array<std::uint8_t, 3> background{255, 255, 255};
  bool orient = true;     // apply EXIF's orientation
  bool tolerant = false;  // a damaged or truncated file gives what it has; the rest is filled
  DecodeLimits limits{};
};

struct ImageResult {
  std::int64_t width = 0, height = 0;
  bool damaged = false;  // with `tolerant`: something is missing or wrong ...
  std::string damage{};  // ... and this is what the decoder said
};

// Reads headers only: no limit is applied but those on what it takes to read them.
Status probe_image(std::span<const std::byte> bytes, ImageInfo& info);

// Fills `destination`, uint8 [height, width, channels] (or [height, width] for one channel) with
// the size that probe_image tells; with `orient` off, 5 to 8 have width and height swapped.
Status decode_image(std::span<const std::byte> bytes, const ImageOptions& options,
                    const Array& destination, ImageResult* result = nullptr);

}  // namespace millrace
