#include "image_reader.h"
#include "pixel_convert.h"

#include <millrace/decoders/image/image.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

namespace millrace {

using namespace detail;

namespace {

// A sink that converts rows to the channels of the destination.
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
