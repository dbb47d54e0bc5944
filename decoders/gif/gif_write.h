// Arrays to an animated GIF: one palette for the whole clip, chosen from its colours, and error
// diffusion. The file appears under its name when it is complete.
//
//   Status status = write_gif("sample.gif", frames, {.frames = 17, .height = 128, .width = 128},
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

// How the frames lie in memory.
struct GifFrames {
  std::int64_t frames = 1;
  int height = 0;
  int width = 0;
  int channels = 3;  // 3: RGB; 1: grey
  ClipLayout layout = ClipLayout::thwc;
};

struct GifWriteOptions {
  // Up to 100. GIF counts in hundredths of a second: delays vary by one so that no time is lost.
  double frames_per_second = 10;
  int loops = 0;  // 0: for ever
  bool dither = true;
};

Status encode_gif(std::span<const std::uint8_t> pixels, const GifFrames& shape,
                  const GifWriteOptions& options, std::vector<std::uint8_t>& file);
Status write_gif(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                 const GifFrames& shape, const GifWriteOptions& options = {});

}  // namespace millrace
