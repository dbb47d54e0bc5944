#include "image_reader.h"
#include "pixel_convert.h"
#include "place_rows.h"

#include <millrace/decoders/image/image_transform.h>
#include <millrace/decoders/resize/resize_rows.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace millrace {

using namespace detail;

namespace {

Error bad_argument(const std::string& reason) {
  return Error(reason).stage("transform").kind(ErrorKind::usage);
}

struct Target {
  std::int64_t height = 0, width = 0;
};

Status read_target(const TransformOptions& options, const Array& destination, Target& target) {
  const Shape& shape = destination.shape();
  const bool planes = options.layout == Layout::chw;
  const int channels = options.image.channels;
  if (channels != 1 && channels != 3 && channels != 4) {
    return bad_argument("channels must be 1, 3 or 4, but is " + std::to_string(channels));
  }
  const bool right_type =
      destination.dtype() == DType::uint8 || destination.dtype() == DType::float32;
  if (!right_type || shape.rank() != 3 || shape[planes ? 0 : 2] != channels ||
      destination.elements() == 0) {
    return bad_argument(
        "the destination must be uint8 or float32 " +
        std::string(planes ? "[channels, height, width]" : "[height, width, channels]") + " with " +
        std::to_string(channels) + " channels, not " + to_string(destination));
  }
  target = {shape[planes ? 1 : 0], shape[planes ? 2 : 1]};
  return {};
}

// As torchvision's CenterCrop: Python's round(), which rounds halves to even.
std::int64_t centre(std::int64_t whole, std::int64_t part) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2.0));
}

// The size of the resized picture and the crop in it, for a picture of width x height.
Status plan_crop(std::int64_t width, std::int64_t height, const TransformOptions& options,
                 const Target& target, ResizeOptions& resize) {
  const std::int64_t size = options.size > 0 ? options.size : std::min(target.width, target.height);
  const std::int64_t shorter = std::min(width, height), longer = std::max(width, height);
  // torchvision's Resize: the longer side is cut to an integer, not rounded.
  const auto stretched =
      static_cast<std::int64_t>(static_cast<double>(size * longer) / static_cast<double>(shorter));
  resize.filter = options.filter;
  resize.flip = options.flip;
  resize.width = width <= height ? size : stretched;
  resize.height = width <= height ? stretched : size;
  if (target.width > resize.width || target.height > resize.height) {
    return bad_argument("a crop of " + std::to_string(target.width) + " x " +
                        std::to_string(target.height) + " does not fit the resized picture of " +
                        std::to_string(resize.width) + " x " + std::to_string(resize.height));
  }
  resize.top = centre(resize.height, target.height);
  resize.left = centre(resize.width, target.width);
  // The mirror comes before the crop, which may be off centre by half a pixel.
  if (options.flip) resize.left = resize.width - target.width - resize.left;
  return {};
}

// The resized picture has its own limit: 1 x 16,384 pixels would be enlarged to millions.
Status check_stretch(const Header& header, const ResizeOptions& resize,
                     const DecodeLimits& limits) {
  const std::int64_t longest = std::max<std::int64_t>(limits.image_side, 1 << 14) * 64;
  if (resize.width <= longest && resize.height <= longest) return {};
  return image_error(header.format,
                     "it is " + std::to_string(header.width) + " x " +
                         std::to_string(header.height) + " pixels, too narrow to be resized",
                     "Leave it out");
}

// The smallest of 1/8, 2/8, 4/8 and 8/8 at which both sides are at least twice the target's.
int fast_eighths(const Header& header, const ResizeOptions& resize) {
  const bool turned = header.turned();
  const std::int64_t width = turned ? resize.height : resize.width;
  const std::int64_t height = turned ? resize.width : resize.height;
  for (int eighths : {1, 2, 4}) {
    if ((header.width * eighths + 7) / 8 >= 2 * width &&
        (header.height * eighths + 7) / 8 >= 2 * height) {
      return eighths;
    }
  }
  return 8;
}

// Converts stored rows to the channels that are resized.
class ConvertRows : public RowSink {
 public:
  ConvertRows(const ChannelRule& rule, std::int64_t width, bool weighted, RowSink& sink)
      : rule_(rule), width_(width), weighted_(weighted), sink_(sink) {}
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override {
    constexpr std::int64_t band_rows = 16;
    const std::size_t to_stride = static_cast<std::size_t>(width_ * rule_.to) + row_padding;
    std::uint8_t* band =
        Scratch::ensure(Scratch::of_this_thread().converted, band_rows * to_stride);
    while (count > 0) {
      const std::int64_t now = std::min(count, band_rows);
      for (std::int64_t i = 0; i < now; ++i, first += stride) {
        std::uint8_t* row = band + static_cast<std::size_t>(i) * to_stride;
        convert_row(rule_, first, width_, row);
        if (weighted_) premultiply(row, width_);
      }
      sink_.rows(band, to_stride, now);
      count -= now;
    }
  }

 private:
  ChannelRule rule_;
  std::int64_t width_;
  bool weighted_;
  RowSink& sink_;
};

// Collects a whole picture, for pictures whose orientation must be changed.
class CollectRows : public RowSink {
 public:
  CollectRows(std::size_t bytes, std::uint8_t* to) : bytes_(bytes), to_(to) {}
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, first += stride, to_ += bytes_) {
      std::copy(first, first + bytes_, to_);
    }
  }

 private:
  std::size_t bytes_;
  std::uint8_t* to_;
};

struct Job {
  Bytes bytes;
  const TransformOptions& options;
  Header header;
  ResizeOptions resize;
  Target target;

  bool turned() const { return options.image.orient && header.orientation != 1; }
  bool swapped() const { return turned() && header.turned(); }
};

// Grey is resized as one channel and copied to all three at the end.
ChannelRule channel_rule(const Job& job) {
  const ImageOptions& image = job.options.image;
  ChannelRule rule{job.header.channels,
                   job.header.channels == 1 && image.channels == 3 ? 1 : image.channels,
                   image.alpha == AlphaRule::composite};
  std::copy(image.background.begin(), image.background.end(), rule.background);
  return rule;
}

// Reads the whole picture, applies the orientation and passes the region of the plan to `sink`.
Status read_turned(const Job& job, const ReadRequest& request, const ChannelRule& rule,
                   const Region& wanted, RowSink& sink, Damage& damage) {
  Scratch& scratch = Scratch::of_this_thread();
  const std::int64_t width = request.region.width(), height = request.region.height();
  const auto stride = static_cast<std::size_t>(width * rule.to);
  const std::size_t size = stride * static_cast<std::size_t>(height) + row_padding;
  std::uint8_t* stored = Scratch::ensure(scratch.turned, size);
  CollectRows collect(stride, stored);
  ConvertRows convert(rule, width, false, collect);
  if (Status status = read_rows(job.bytes, job.header, request, convert, damage); !status.ok()) {
    return status;
  }
  std::uint8_t* shown = Scratch::ensure(scratch.shown, size);
  orient_pixels(job.header.orientation, stored, stride, width, height, rule.to, shown);
  const std::int64_t shown_width = job.swapped() ? height : width;
  send_raster(shown, static_cast<std::size_t>(shown_width * rule.to), rule.to, wanted, sink);
  return {};
}

Status run(const Job& job, const Array& destination, Damage& damage) {
  const TransformOptions& options = job.options;
  const bool nearest = options.filter == Filter::nearest;
  const bool fast = options.fast && job.header.format == ImageFormat::jpeg && !nearest;
  const int eighths = fast ? fast_eighths(job.header, job.resize) : 8;
  const std::int64_t width = (job.header.width * eighths + 7) / 8;
  const std::int64_t height = (job.header.height * eighths + 7) / 8;
  const std::int64_t shown_width = job.swapped() ? height : width;
  const std::int64_t shown_height = job.swapped() ? width : height;
  const ResizePlan plan(shown_width, shown_height, job.resize, job.target.width, job.target.height);
  const Region wanted = plan.source();
  const ChannelRule rule = channel_rule(job);
  const bool weighted = rule.to == 4 && !nearest && !plan.is_identity();
  PlaceRows place(destination, options.layout, rule.to, options.image.channels, weighted);
  RowResizer resizer(plan, rule.to, options.flip, place);
  ReadRequest request{.region = {0, 0, width, height},
                      .tolerant = options.image.tolerant,
                      .jpeg_eighths = eighths,
                      .limits = options.image.limits};
  if (job.turned()) {
    ConvertRows weigh({.from = rule.to, .to = rule.to}, wanted.width(), weighted, resizer);
    return read_turned(job, request, rule, wanted,
                       weighted ? static_cast<RowSink&>(weigh) : resizer, damage);
  }
  request.region = wanted;
  ConvertRows convert(rule, wanted.width(), weighted, resizer);
  const bool as_stored = rule.from == rule.to && !rule.composite && !weighted;
  return read_rows(job.bytes, job.header, request,
                   as_stored ? static_cast<RowSink&>(resizer) : convert, damage);
}

}  // namespace

Status transform_image(std::span<const std::byte> bytes, const TransformOptions& options,
                       const Array& destination, ImageResult* result) {
  Job job{bytes, options, {}, {}, {}};
  if (Status status = read_target(options, destination, job.target); !status.ok()) return status;
  if (Status status = read_header(bytes, job.header); !status.ok()) return status;
  const DecodeLimits& limits = options.image.limits;
  if (Status status = check_limits(job.header, limits); !status.ok()) return status;
  const std::int64_t width = job.swapped() ? job.header.height : job.header.width;
  const std::int64_t height = job.swapped() ? job.header.width : job.header.height;
  if (Status status = plan_crop(width, height, options, job.target, job.resize); !status.ok()) {
    return status;
  }
  if (Status status = check_stretch(job.header, job.resize, limits); !status.ok()) return status;
  Damage damage;
  Status status = run(job, destination, damage);
  Scratch::of_this_thread().trim();
  if (result != nullptr) {
    *result = {.width = width, .height = height, .damaged = !damage.empty(), .damage = damage};
  }
  return status;
}

}  // namespace millrace
