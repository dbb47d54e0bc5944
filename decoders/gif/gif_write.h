// Writes an animated GIF: one palette for the whole clip, chosen from its colours, and error
// diffusion. The file appears under its name only when it is complete and on the disk.
//
//   std::vector<std::uint8_t> pixels(17 * 128 * 128 * 3);
//   Status status = write_gif("sample.gif", pixels, {.frames = 17, .height = 128, .width = 128},
//                             {.frames_per_second = 8});
#pragma once

#include <millrace/decoders/video/clip.h>
#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace millrace {

// The layout of the frames in memory: [frames, height, width, channels].
struct GifFrames {
  std::int64_t frames = 1;
  int height = 0;
  int width = 0;
  int channels = 3;  // 3: RGB; 1: grey
  ClipLayout layout = ClipLayout::thwc;
};

struct GifWriteOptions {
  // Up to 100. GIF delays are in hundredths of a second; they vary by one to keep the mean rate.
  double frames_per_second = 10;
  int loops = 0;  // number of times it plays; 0: forever
  bool dither = true;
};

Status encode_gif(std::span<const std::uint8_t> pixels, const GifFrames& shape,
                  const GifWriteOptions& options, std::vector<std::uint8_t>& file);
Status write_gif(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                 const GifFrames& shape, const GifWriteOptions& options = {});

}  // namespace millrace
