#include <millrace/decoders/image/image_write.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace millrace {
namespace {

struct Stack {
  std::int64_t count, channels, height, width;
};

Stack stack_of(const Array& images, const char* what) {
  const Shape& shape = images.shape();
  const bool right_type = images.dtype() == DType::uint8 || images.dtype() == DType::float32;
  if (!right_type || shape.rank() != 4 || shape[1] < 1 || shape[1] > 4 || images.elements() == 0) {
    throw Error(std::string(what) +
                " needs uint8 or float32 [n, 1 to 4 channels, height, width], not " +
                to_string(images))
        .kind(ErrorKind::usage);
  }
  return {shape[0], shape[1], shape[2], shape[3]};
}

// As torchvision's save_image: scaled, rounded half up, clamped. NaN becomes black.
std::uint8_t to_byte(float value) {
  const float scaled = value * 255.0F + 0.5F;
  return scaled > 0 ? static_cast<std::uint8_t>(std::min(scaled, 255.0F)) : 0;
}

std::uint8_t element(const Array& images, std::int64_t at) {
  return images.dtype() == DType::uint8
             ? std::to_integer<std::uint8_t>(images.data()[at])
             : to_byte(reinterpret_cast<const float*>(images.data())[at]);
}

// Copies image `index` to (top, left). A single channel is copied to all channels of the picture.
void paste(const Array& images, const Stack& stack, std::int64_t index, const Array& picture,
           std::int64_t top, std::int64_t left) {
  auto pixels = picture.as<std::uint8_t>();
  const std::int64_t width = picture.shape()[1], channels = picture.shape()[2];
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t plane = index * stack.channels + std::min(c, stack.channels - 1);
    for (std::int64_t y = 0; y < stack.height; ++y) {
      for (std::int64_t x = 0; x < stack.width; ++x) {
        pixels[static_cast<std::size_t>(((top + y) * width + left + x) * channels + c)] =
            element(images, (plane * stack.height + y) * stack.width + x);
      }
    }
  }
}

Array picture_for(const Stack& stack, std::int64_t height, std::int64_t width) {
  return Array::empty(DType::uint8, {height, width, stack.channels == 1 ? 3 : stack.channels});
}

}  // namespace

Array make_grid(const Array& images, const GridOptions& options) {
  const Stack stack = stack_of(images, "make_grid");
  if (options.columns < 1 || options.padding < 0) {
    throw Error("make_grid needs at least one column and no negative padding")
        .kind(ErrorKind::usage);
  }
  if (stack.count == 1) {
    Array picture = picture_for(stack, stack.height, stack.width);
    paste(images, stack, 0, picture, 0, 0);
    return picture;
  }
  const std::int64_t columns = std::min(options.columns, stack.count);
  const std::int64_t rows = (stack.count + columns - 1) / columns;
  const std::int64_t height = stack.height + options.padding;
  const std::int64_t width = stack.width + options.padding;
  Array picture =
      picture_for(stack, height * rows + options.padding, width * columns + options.padding);
  const auto pad = static_cast<float>(options.pad_value);
  const std::uint8_t pad_byte = to_byte(images.dtype() == DType::uint8 ? pad / 255.0F : pad);
  std::ranges::fill(picture.as<std::uint8_t>(), pad_byte);
  for (std::int64_t i = 0; i < stack.count; ++i) {
    paste(images, stack, i, picture, i / columns * height + options.padding,
          i % columns * width + options.padding);
  }
  return picture;
}

Array make_strip(const Array& frames) {
  const Stack stack = stack_of(frames, "make_strip");
  Array picture = picture_for(stack, stack.count * stack.height, stack.width);
  for (std::int64_t i = 0; i < stack.count; ++i) {
    paste(frames, stack, i, picture, i * stack.height, 0);
  }
  return picture;
}

Array make_sheet(std::span<const Array> tiles, const SheetOptions& options) {
  const auto count = static_cast<std::int64_t>(tiles.size());
  if (count < 1 || options.columns < 1 || options.gap < 0) {
    throw Error("make_sheet needs a tile, a column and no negative gap").kind(ErrorKind::usage);
  }
  const std::int64_t columns = std::min(options.columns, count);
  const std::int64_t rows = (count + columns - 1) / columns;
  const std::int64_t across = options.width + options.gap, down = options.height + options.gap;
  const std::int64_t width = columns * across + options.gap;
  Array sheet = Array::empty(DType::uint8, {rows * down + options.gap, width, 3});
  std::ranges::fill(sheet.as<std::uint8_t>(), options.background);
  for (std::int64_t i = 0; i < count; ++i) {
    const Array& tile = tiles[static_cast<std::size_t>(i)];
    if (tile.elements() == 0) continue;
    if (tile.dtype() != DType::uint8 || tile.shape() != Shape{options.height, options.width, 3}) {
      throw Error("make_sheet needs tiles uint8 " +
                  to_string(Shape{options.height, options.width, 3}) + ", not " + to_string(tile))
          .kind(ErrorKind::usage);
    }
    const std::int64_t left = i % columns * across + options.gap;
    const std::int64_t top = i / columns * down + options.gap;
    for (std::int64_t y = 0; y < options.height; ++y) {
      std::memcpy(sheet.data() + ((top + y) * width + left) * 3,
                  tile.data() + y * options.width * 3, static_cast<std::size_t>(options.width) * 3);
    }
  }
  return sheet;
}

}  // namespace millrace
