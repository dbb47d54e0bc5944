// Private: one reader per image format, with two functions each. One reads the header; the other
// reads rows of pixels in stored order (orientation is applied elsewhere) as 8-bit grey, grey and
// alpha, RGB or RGBA.
#pragma once

#include <millrace/decoders/container/deadline.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/resize/row_sink.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace::detail {

using Bytes = std::span<const std::byte>;

inline const std::uint8_t* raw(Bytes bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// The content of a header; width and height are those before the orientation is applied.
struct Header {
  ImageFormat format = ImageFormat::unknown;
  std::int64_t width = 0, height = 0;
  int channels = 3;
  int bits = 8;
  int orientation = 1;

  bool turned() const { return orientation >= 5; }
};

struct ReadRequest {
  Region region{};  // the rows and columns passed to the sink; the whole picture by default
  bool tolerant = false;
  int jpeg_eighths = 8;  // decode a JPEG at n/8 of its size; the region refers to that size
  DecodeLimits limits{};
  Deadline deadline{};  // started by read_rows(); see Note [Deadlines]
};

// A tolerant reader's message about damage; empty: none found.
using Damage = std::string;

// An error about an image: "JPEG: reason. hint".
Error image_error(ImageFormat format, const std::string& reason, const std::string& hint);
Error damaged_error(ImageFormat format, const std::string& reason);
Error late_error(ImageFormat format, const DecodeLimits& limits);

// Checks the limits that apply to every format.
Status check_limits(const Header& header, const DecodeLimits& limits);

ImageFormat sniff(Bytes bytes);
Status read_header(Bytes bytes, Header& header);
Status read_rows(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                 Damage& damage);

// The EXIF orientation in a TIFF structure; 1 if there is no valid one.
int tiff_orientation(Bytes tiff);
struct TiffFacts {
  int compression = 1, meaning = 1, samples = 1;
  bool tiled = false, low_bits_first = false;
  bool premultiplied = false;  // colours are multiplied by alpha
  bool full_range = true;      // of YCbCr
};
TiffFacts tiff_facts(Bytes tiff);
// True if all strips or tiles listed in the first directory are inside the file.
bool tiff_is_whole(Bytes tiff);

Status read_jpeg_header(Bytes bytes, Header& header);
Status read_jpeg(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                 Damage& damage);
Status read_png_header(Bytes bytes, Header& header);
Status read_png(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                Damage& damage);
Status read_webp_header(Bytes bytes, Header& header);
Status read_webp(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                 Damage& damage);
Status read_gif_header(Bytes bytes, Header& header);
Status read_gif(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                Damage& damage);
Status read_libav_header(Bytes bytes, Header& header);
Status read_libav(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                  Damage& damage);

// Passes the requested region of a picture in memory to the sink.
inline void send_raster(const std::uint8_t* pixels, std::size_t stride, int channels,
                        const Region& region, RowSink& sink) {
  sink.rows(pixels + static_cast<std::size_t>(region.y0) * stride +
                static_cast<std::size_t>(region.x0 * channels),
            stride, region.height());
}

}  // namespace millrace::detail
