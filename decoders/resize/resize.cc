#include "resize_rows.h"

#include <millrace/decoders/image/pixel_convert.h>
#include <millrace/decoders/resize/resize.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace millrace {

using namespace detail;

namespace {

struct Picture {
  std::int64_t height = 0, width = 0;
  int channels = 1;
  std::uint8_t* data = nullptr;
  std::size_t stride() const { return static_cast<std::size_t>(width * channels); }
  std::uint8_t* row(std::int64_t y) const { return data + static_cast<std::size_t>(y) * stride(); }
};

Error bad_argument(const std::string& reason) {
  return Error(reason).stage("resize").kind(ErrorKind::usage);
}

Status view(const Array& array, const char* name, Picture& picture) {
  const Shape& shape = array.shape();
  const bool grey = shape.rank() == 2;
  const std::int64_t channels = grey ? 1 : shape.rank() == 3 ? shape[2] : 0;
  if (array.dtype() != DType::uint8 || (channels != 1 && channels != 3 && channels != 4)) {
    return bad_argument(std::string("the ") + name +
                        " must be uint8 [height, width] or [height, width, 1, 3 or 4], not " +
                        to_string(array));
  }
  if (shape[0] < 1 || shape[1] < 1) {
    return bad_argument(std::string("the ") + name + " is empty: " + to_string(array));
  }
  picture = {shape[0], shape[1], static_cast<int>(channels), array.as<std::uint8_t>().data()};
  return {};
}

Status view_pair(const Array& source, const Array& destination, Picture& from, Picture& to) {
  if (Status status = view(source, "source", from); !status.ok()) return status;
  if (Status status = view(destination, "destination", to); !status.ok()) return status;
  if (from.channels != to.channels) {
    return bad_argument("the source has " + std::to_string(from.channels) +
                        " channels, but the destination has " + std::to_string(to.channels));
  }
  return {};
}

Status check_crop(const ResizeOptions& options, const Picture& to) {
  const std::int64_t width = options.width > 0 ? options.width : to.width;
  const std::int64_t height = options.height > 0 ? options.height : to.height;
  constexpr std::int64_t largest = 1 << 24;  // sizes are exact as the floats that Pillow uses
  if (options.left < 0 || options.top < 0 || options.left + to.width > width ||
      options.top + to.height > height || width > largest || height > largest) {
    return bad_argument("a crop of " + std::to_string(to.width) + " x " +
                        std::to_string(to.height) + " at (" + std::to_string(options.left) + ", " +
                        std::to_string(options.top) + ") does not lie in the resized picture of " +
                        std::to_string(width) + " x " + std::to_string(height));
  }
  return {};
}

class StoreRows : public RowSink {
 public:
  StoreRows(const Picture& to, bool unpremultiply) : to_(to), unpremultiply_(unpremultiply) {}
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, ++y_, first += stride) {
      std::memcpy(to_.row(y_), first, to_.stride());
      if (unpremultiply_) unpremultiply(to_.row(y_), to_.width);
    }
  }

 private:
  Picture to_;
  bool unpremultiply_;
  std::int64_t y_ = 0;
};

}  // namespace

Status resize_image(const Array& source, const ResizeOptions& options, const Array& destination) {
  Picture from, to;
  if (Status status = view_pair(source, destination, from, to); !status.ok()) return status;
  if (Status status = check_crop(options, to); !status.ok()) return status;
  const ResizePlan plan(from.width, from.height, options, to.width, to.height);
  // If no axis is weighted (same size, or `nearest`), Pillow does not multiply colours by alpha.
  const bool premultiplied =
      from.channels == 4 && options.filter != Filter::nearest && !plan.is_identity();
  StoreRows store(to, premultiplied);
  RowResizer resizer(plan, from.channels, options.flip, store);
  const Region region = plan.source();
  const auto bytes = static_cast<std::size_t>(region.width() * from.channels);
  // Rows go through memory with padding behind them, which the caller's array does not have.
  const std::size_t stride = bytes + row_padding;
  constexpr std::int64_t band_rows = 16;
  std::uint8_t* band = Scratch::ensure(Scratch::of_this_thread().band, band_rows * stride);
  for (std::int64_t y = region.y0; y < region.y1;) {
    const std::int64_t count = std::min(band_rows, region.y1 - y);
    for (std::int64_t i = 0; i < count; ++i, ++y) {
      std::uint8_t* row = band + static_cast<std::size_t>(i) * stride;
      std::memcpy(row, from.row(y) + region.x0 * from.channels, bytes);
      if (premultiplied) premultiply(row, region.width());
    }
    resizer.rows(band, stride, count);
  }
  Scratch::of_this_thread().trim();
  return {};
}

Status flip_image(const Array& source, const Array& destination) {
  if (source.shape() != destination.shape()) {
    return bad_argument("a flip needs a destination of the source's shape " +
                        to_string(source.shape()) + ", not " + to_string(destination.shape()));
  }
  return resize_image(source, {.filter = Filter::nearest, .flip = true}, destination);
}

Status rotate_image(const Array& source, int quarter_turns, const Array& destination) {
  Picture from, to;
  if (Status status = view_pair(source, destination, from, to); !status.ok()) return status;
  const int turns = ((quarter_turns % 4) + 4) % 4;
  const bool swapped = turns % 2 == 1;
  if (to.width != (swapped ? from.height : from.width) ||
      to.height != (swapped ? from.width : from.height)) {
    return bad_argument("a picture of " + to_string(source.shape()) + " turned by " +
                        std::to_string(turns) + " quarters does not fit " +
                        to_string(destination.shape()));
  }
  // The EXIF orientations of the same rotations.
  constexpr int orientation[] = {1, 8, 3, 6};
  orient_pixels(orientation[turns], from.data, from.stride(), from.width, from.height,
                from.channels, to.data);
  return {};
}

}  // namespace millrace
