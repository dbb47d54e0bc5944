// Encodes PNG files and arranges images in grids, as trainers save their results.
//
//   Array samples = Array::empty(DType::uint8, {16, 3, 64, 64});  // [n, channels, height, width]
//   Array grid = make_grid(samples, {.columns = 8});
//   std::vector<std::byte> file;
//   Status status = encode_png(grid, {}, file);
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/array.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

struct PngOptions {
  int compression = 6;  // zlib level, 0 to 9
};

// `image` is uint8 or uint16, [height, width] or [height, width, 1 to 4 channels].
Status encode_png(const Array& image, const PngOptions& options, std::vector<std::byte>& file);

struct GridOptions {
  std::int64_t columns = 8;  // nrow in torchvision
  std::int64_t padding = 2;
  double pad_value = 0;  // in the range of the images
};

// The same as torchvision's make_grid and save_image: [n, channels, height, width], uint8 or
// float32 in [0, 1], to one uint8 picture [height, width, channels]. Grey becomes RGB, and a single
// image gets no border. Throws an Error of kind usage if the images have another shape or type.
Array make_grid(const Array& images, const GridOptions& options = {});

// Arranges the frames [n, channels, height, width] below each other, without borders.
Array make_strip(const Array& frames);

struct SheetOptions {
  std::int64_t columns = 8;
  std::int64_t height = 128, width = 128;  // of every tile
  std::int64_t gap = 4;
  std::uint8_t background = 255;
};

// Arranges pictures uint8 [height, width, 3] in rows and columns with gaps; an empty Array leaves
// its tile blank.
Array make_sheet(std::span<const Array> tiles, const SheetOptions& options = {});

}  // namespace millrace
