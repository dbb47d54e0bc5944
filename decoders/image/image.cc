#include "image_reader.h"
#include "pixel_convert.h"

#include <millrace/decoders/image/image.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

namespace millrace {
namespace {

struct Magic {
  ImageFormat format;
  std::size_t offset;
  std::string_view bytes;
};

using namespace std::string_view_literals;

constexpr Magic magics[] = {
    {ImageFormat::jpeg, 0, "\xFF\xD8\xFF"sv},
    {ImageFormat::png, 0, "\x89PNG\r\n\x1A\n"sv},
    {ImageFormat::gif, 0, "GIF87a"sv},
    {ImageFormat::gif, 0, "GIF89a"sv},
    {ImageFormat::tiff, 0, "II*\0"sv},
    {ImageFormat::tiff, 0, "MM\0*"sv},
    {ImageFormat::bmp, 0, "BM"sv},
    {ImageFormat::sgi, 0, "\x01\xDA"sv},
    {ImageFormat::sun, 0, "\x59\xA6\x6A\x95"sv},
    {ImageFormat::dds, 0, "DDS "sv},
    {ImageFormat::dpx, 0, "SDPX"sv},
    {ImageFormat::dpx, 0, "XPDS"sv},
    {ImageFormat::exr, 0, "\x76\x2F\x31\x01"sv},
    {ImageFormat::psd, 0, "8BPS"sv},
    {ImageFormat::qoi, 0, "qoif"sv},
    {ImageFormat::jpeg2000, 0, "\0\0\0\x0CjP  \r\n\x87\n"sv},
    {ImageFormat::jpeg2000, 0, "\xFF\x4F\xFF\x51"sv},
};

bool starts_with(Bytes bytes, std::size_t offset, std::string_view magic) {
  return bytes.size() >= offset + magic.size() &&
         std::memcmp(raw(bytes) + offset, magic.data(), magic.size()) == 0;
}

bool is_space(std::uint8_t c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '#';
}

// Formats without a magic number, judged by fields that have few legal values.
ImageFormat guess(Bytes bytes) {
  const std::uint8_t* p = raw(bytes);
  if (bytes.size() >= 3 && p[0] == 'P' && std::strchr("1234567Ff", p[1]) != nullptr && p[1] != 0 &&
      is_space(p[2])) {
    return ImageFormat::pnm;
  }
  if (bytes.size() >= 128 && p[0] == 10 && p[1] <= 5 && p[2] <= 1 &&
      (p[3] == 1 || p[3] == 2 || p[3] == 4 || p[3] == 8) && p[64] == 0) {
    return ImageFormat::pcx;
  }
  if (bytes.size() >= 18 && p[1] <= 1 && (p[2] & ~8) >= 1 && (p[2] & ~8) <= 3 &&
      (p[16] == 8 || p[16] == 15 || p[16] == 16 || p[16] == 24 || p[16] == 32) &&
      (p[1] == 0 || p[7] == 15 || p[7] == 16 || p[7] == 24 || p[7] == 32) && (p[12] | p[13]) != 0 &&
      (p[14] | p[15]) != 0) {
    return ImageFormat::tga;
  }
  return ImageFormat::unknown;
}

// Puts rows of one kind of pixel into memory as another.
class ConvertInto : public RowSink {
 public:
  ConvertInto(const ChannelRule& rule, std::int64_t width, std::uint8_t* to)
      : rule_(rule), width_(width), to_(to) {}
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, first += stride) {
      convert_row(rule_, first, width_, to_);
      to_ += width_ * rule_.to;
    }
  }

 private:
  ChannelRule rule_;
  std::int64_t width_;
  std::uint8_t* to_;
};

Error bad_argument(const std::string& reason) {
  return Error(reason).stage("image").kind(ErrorKind::usage);
}

Status check_destination(const Header& header, bool oriented, int channels,
                         const Array& destination) {
  if (channels != 1 && channels != 3 && channels != 4) {
    return bad_argument("channels must be 1, 3 or 4, but is " + std::to_string(channels));
  }
  const bool swapped = oriented && header.turned();
  const std::int64_t height = swapped ? header.width : header.height;
  const std::int64_t width = swapped ? header.height : header.width;
  const Shape full{height, width, channels}, flat{height, width};
  if (destination.dtype() != DType::uint8 ||
      (destination.shape() != full && !(channels == 1 && destination.shape() == flat))) {
    return bad_argument("the destination must be uint8 " + to_string(full) + ", not " +
                        to_string(destination));
  }
  return {};
}

Status decode_checked(Bytes bytes, const Header& header, const ImageOptions& options,
                      const Array& destination, Damage& damage) {
  const ReadRequest request{.region = {0, 0, header.width, header.height},
                            .tolerant = options.tolerant,
                            .limits = options.limits};
  ChannelRule rule{header.channels, options.channels, options.alpha == AlphaRule::composite};
  std::copy(options.background.begin(), options.background.end(), rule.background);
  std::uint8_t* pixels = destination.as<std::uint8_t>().data();
  if (!options.orient || header.orientation == 1) {
    ConvertInto sink(rule, header.width, pixels);
    return read_rows(bytes, header, request, sink, damage);
  }
  const auto stride = static_cast<std::size_t>(header.width * options.channels);
  std::uint8_t* stored = Scratch::ensure(Scratch::of_this_thread().turned,
                                         stride * static_cast<std::size_t>(header.height));
  ConvertInto sink(rule, header.width, stored);
  Status status = read_rows(bytes, header, request, sink, damage);
  if (!status.ok()) return status;
  orient_pixels(header.orientation, stored, stride, header.width, header.height, options.channels,
                pixels);
  return {};
}

}  // namespace

std::string_view name_of(ImageFormat format) {
  constexpr std::string_view names[] = {"image", "JPEG", "PNG", "WebP", "GIF", "BMP",
                                        "TIFF",  "PNM",  "TGA", "SGI",  "Sun", "PCX",
                                        "DDS",   "DPX",  "EXR", "PSD",  "QOI", "JPEG 2000"};
  return names[static_cast<std::size_t>(format)];
}

Error image_error(ImageFormat format, const std::string& reason, const std::string& hint) {
  return Error(reason).stage(std::string(name_of(format))).hint(hint);
}

Error damaged_error(ImageFormat format, const std::string& reason) {
  return image_error(format, "cannot decode (" + reason + ")",
                     "The file is damaged or cut short: copy it again, or decode it as tolerant");
}

Error late_error(ImageFormat format, const DecodeLimits& limits) {
  char reason[80];
  std::snprintf(reason, sizeof reason, "cannot decode within the deadline of %g s",
                limits.deadline_seconds);
  return image_error(format, reason, "Raise the limit deadline_seconds if you trust the file");
}

Status check_limits(const Header& header, const DecodeLimits& limits) {
  const std::string size =
      std::to_string(header.width) + " x " + std::to_string(header.height) + " pixels";
  if (header.width < 1 || header.height < 1) {
    return damaged_error(header.format, "it claims " + size);
  }
  if (header.width > limits.image_side || header.height > limits.image_side) {
    return image_error(header.format,
                       "it claims " + size + ", more than the limit of " +
                           std::to_string(limits.image_side) + " a side",
                       "Raise the limit image_side if you trust the file");
  }
  if (header.width * header.height > limits.image_pixels) {
    return image_error(header.format,
                       "it claims " + size + ", more than the limit of " +
                           std::to_string(limits.image_pixels) + " in all",
                       "Raise the limit image_pixels if you trust the file");
  }
  return {};
}

ImageFormat sniff(Bytes bytes) {
  for (const Magic& magic : magics) {
    if (starts_with(bytes, magic.offset, magic.bytes)) return magic.format;
  }
  if (starts_with(bytes, 0, "RIFF") && starts_with(bytes, 8, "WEBP")) return ImageFormat::webp;
  return guess(bytes);
}

Status read_header(Bytes bytes, Header& header) {
  header = {.format = sniff(bytes)};
  switch (header.format) {
    case ImageFormat::unknown:
      return image_error(
          header.format,
          bytes.empty() ? "the file is empty" : "its first bytes are those of no image format",
          "Check that the file is an image, and whole");
    case ImageFormat::jpeg:
      return read_jpeg_header(bytes, header);
    case ImageFormat::png:
      return read_png_header(bytes, header);
    case ImageFormat::webp:
      return read_webp_header(bytes, header);
    case ImageFormat::gif:
      return read_gif_header(bytes, header);
    default:
      return read_libav_header(bytes, header);
  }
}

namespace {

Status read_format(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                   Damage& damage) {
  switch (header.format) {
    case ImageFormat::jpeg:
      return read_jpeg(bytes, header, request, sink, damage);
    case ImageFormat::png:
      return read_png(bytes, header, request, sink, damage);
    case ImageFormat::webp:
      return read_webp(bytes, header, request, sink, damage);
    case ImageFormat::gif:
      return read_gif(bytes, header, request, sink, damage);
    default:
      return read_libav(bytes, header, request, sink, damage);
  }
}

}  // namespace

Status read_rows(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                 Damage& damage) {
  ReadRequest timed = request;
  timed.deadline.start(request.limits.deadline_seconds);
  Status status = read_format(bytes, header, timed, sink, damage);
  if (timed.deadline.expired()) return late_error(header.format, request.limits);
  return status;
}

Status probe_image(std::span<const std::byte> bytes, ImageInfo& info) {
  Header header;
  if (Status status = read_header(bytes, header); !status.ok()) return status;
  info = {.format = header.format,
          .width = header.turned() ? header.height : header.width,
          .height = header.turned() ? header.width : header.height,
          .channels = header.channels,
          .bits = header.bits,
          .orientation = header.orientation};
  return {};
}

Status decode_image(std::span<const std::byte> bytes, const ImageOptions& options,
                    const Array& destination, ImageResult* result) {
  Header header;
  if (Status status = read_header(bytes, header); !status.ok()) return status;
  if (Status status = check_limits(header, options.limits); !status.ok()) return status;
  if (Status status = check_destination(header, options.orient, options.channels, destination);
      !status.ok()) {
    return status;
  }
  Damage damage;
  Status status = decode_checked(bytes, header, options, destination, damage);
  Scratch::of_this_thread().trim();
  if (result != nullptr) {
    const bool swapped = options.orient && header.turned();
    *result = {.width = swapped ? header.height : header.width,
               .height = swapped ? header.width : header.height,
               .damaged = !damage.empty(),
               .damage = damage};
  }
  return status;
}

}  // namespace millrace
