#include "image_reader.h"

#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

namespace millrace::detail {
namespace {

const char* message_of(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses an unsupported feature";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file ends too early";
    default:
      return "its bitstream is broken";
  }
}

std::uint32_t little_endian(const std::uint8_t* p) {
  return std::uint32_t{p[3]} << 24 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[1]} << 8 | p[0];
}

int orientation_of(Bytes bytes) {
  const std::uint8_t* data = raw(bytes);
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::size_t length = little_endian(data + at + 4);
    const std::size_t there = bytes.size() - at - 8;
    if (length > there) break;
    if (std::memcmp(data + at, "EXIF", 4) == 0) {
      Bytes body = bytes.subspan(at + 8, length);
      const bool prefixed = length > 6 && std::memcmp(body.data(), "Exif\0", 6) == 0;
      return tiff_orientation(prefixed ? body.subspan(6) : body);
    }
    at += 8 + length + length % 2;
  }
  return 1;
}

struct DeleteAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};
struct DeleteIncremental {
  void operator()(WebPIDecoder* decoder) const { WebPIDelete(decoder); }
};

// The first frame on its canvas, as Pillow shows it.
bool read_animation(Bytes bytes, const Header& header, std::uint8_t* pixels, std::size_t stride) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) return false;
  options.color_mode = MODE_RGBA;
  const WebPData data{raw(bytes), bytes.size()};
  std::unique_ptr<WebPAnimDecoder, DeleteAnimation> decoder(WebPAnimDecoderNew(&data, &options));
  std::uint8_t* canvas = nullptr;
  int timestamp_ms = 0;
  if (!decoder || WebPAnimDecoderGetNext(decoder.get(), &canvas, &timestamp_ms) == 0) return false;
  const auto row = static_cast<std::size_t>(header.width) * 4;
  for (std::size_t y = 0; y < static_cast<std::size_t>(header.height); ++y) {
    std::memcpy(pixels + y * stride, canvas + y * row, row);
  }
  return true;
}

// Decodes the rows that a broken or truncated file still has.
void read_what_is_there(Bytes bytes, WebPDecoderConfig& config) {
  std::unique_ptr<WebPIDecoder, DeleteIncremental> decoder(WebPINewDecoder(&config.output));
  if (decoder) (void)WebPIUpdate(decoder.get(), raw(bytes), bytes.size());
}

}  // namespace

Status read_webp_header(Bytes bytes, Header& header) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(raw(bytes), bytes.size(), &features);
  if (code != VP8_STATUS_OK) return damaged_error(ImageFormat::webp, message_of(code));
  header.width = features.width;
  header.height = features.height;
  // The canvas of an animation may be visible, even if the alpha flag is not set.
  header.channels = features.has_alpha != 0 || features.has_animation != 0 ? 4 : 3;
  header.orientation = orientation_of(bytes);
  return {};
}

Status read_webp(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                 Damage& damage) {
  const std::size_t stride =
      static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.channels) +
      row_padding;
  const std::size_t size = stride * static_cast<std::size_t>(header.height);
  std::uint8_t* pixels = Scratch::ensure(Scratch::of_this_thread().raster, size);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    return damaged_error(ImageFormat::webp, "libwebp has another version than its headers");
  }
  if (WebPGetFeatures(raw(bytes), bytes.size(), &config.input) != VP8_STATUS_OK) {
    return damaged_error(ImageFormat::webp, "its bitstream is broken");
  }
  const char* failure = nullptr;
  if (config.input.has_animation != 0) {
    if (!read_animation(bytes, header, pixels, stride)) failure = "its first frame is broken";
    if (failure != nullptr) std::memset(pixels, 0, size);
  } else {
    config.output.colorspace = header.channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {pixels, static_cast<int>(stride), size};
    const VP8StatusCode code = WebPDecode(raw(bytes), bytes.size(), &config);
    if (code != VP8_STATUS_OK) {
      failure = message_of(code);
      std::memset(pixels, 0, size);
      if (request.tolerant) read_what_is_there(bytes, config);
    }
  }
  if (failure != nullptr && !request.tolerant) return damaged_error(ImageFormat::webp, failure);
  if (failure != nullptr) damage = failure;
  send_raster(pixels, stride, header.channels, request.region, sink);
  return {};
}

}  // namespace millrace::detail
