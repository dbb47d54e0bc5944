// Pictures out: PNG files, grids of images and strips of frames, as trainers save their results.
//
//   std::vector<std::byte> file;
//   Array grid = make_grid(images, {.columns = 8});      // [n, channels, height, width]
//   Status status = encode_png(grid, {}, file);          // write the bytes under a temporary name
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/array.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

struct PngOptions {
  int compression = 6;  // zlib's, 0 to 9
};

// `image` is uint8 or uint16, [height, width] or [height, width, 1 to 4 channels].
Status encode_png(const Array& image, const PngOptions& options, std::vector<std::byte>& file);

struct GridOptions {
  std::int64_t columns = 8;  // torchvision's nrow
  std::int64_t padding = 2;
  double pad_value = 0;  // of the images' type and range
};

// torchvision's make_grid and save_image: [n, channels, height, width] in uint8 or in float32 of
// range [0, 1] to one uint8 picture [height, width, channels]. Grey becomes RGB, and a single
// image gets no border. Throws an Error of kind usage if the images have another shape or type.
Array make_grid(const Array& images, const GridOptions& options = {});

// The frames [n, channels, height, width] below each other, without borders.
Array make_strip(const Array& frames);

struct SheetOptions {
  std::int64_t columns = 8;
  std::int64_t height = 128, width = 128;  // of every tile
  std::int64_t gap = 4;
  std::uint8_t background = 255;
};

// Pictures uint8 [height, width, 3] beside and below each other, with gaps; the place of an empty
// Array stays empty.
Array make_sheet(std::span<const Array> tiles, const SheetOptions& options = {});

}  // namespace millrace
