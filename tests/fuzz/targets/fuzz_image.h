// What the image fuzz targets share: one file, read in every way, with small limits.
#pragma once

#include <millrace/decoders/image/image.h>
#include <millrace/decoders/image/image_transform.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace {

inline void fuzz_image(std::span<const std::byte> bytes) {
  const DecodeLimits limits{
      .image_pixels = 1 << 16, .image_side = 1024, .jpeg_scans = 10, .png_chunk_bytes = 1 << 16};
  ImageInfo info;
  if (!probe_image(bytes, info).ok()) return;
  Array row = Array::empty(DType::uint8, {3, 16, 16});
  for (bool tolerant : {false, true}) {
    const ImageOptions options{
        .channels = tolerant ? 4 : 3, .tolerant = tolerant, .limits = limits};
    (void)transform_image(
        bytes, {.fast = tolerant, .image = {.tolerant = tolerant, .limits = limits}}, row);
    if (info.width * info.height > limits.image_pixels) continue;
    Array pixels = Array::empty(DType::uint8, {info.height, info.width, options.channels});
    (void)decode_image(bytes, options, pixels);
  }
}

// True if the bytes begin as files of one format do, so that a target stays with its format.
inline bool begins_with(const std::uint8_t* data, std::size_t size, std::string_view magic) {
  return std::string_view(reinterpret_cast<const char*>(data), size).substr(0, magic.size()) ==
         magic;
}

}  // namespace millrace
