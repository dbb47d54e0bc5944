// What all image formats share: recognising the format, the limits, and the choice of the reader.
#include "image_reader.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace millrace::detail {

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

// Recognises formats without a magic number by fields that have few legal values.
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

}  // namespace

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

}  // namespace millrace::detail
