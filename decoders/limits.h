// What a file may claim before it is refused. Every limit is checked from the headers, before
// memory is taken, so a file of 1 kB that claims 10^9 pixels costs nothing.
#pragma once

#include <cstdint>

namespace millrace {

struct DecodeLimits {
  // Images
  std::int64_t image_pixels = 89'478'485;
  std::int64_t image_side = 16'384;
  int jpeg_scans = 100;
  std::int64_t png_chunk_bytes = 8'000'000;
  // Video and GIF
  std::int64_t frame_pixels = std::int64_t{4'096} * 4'096;
  std::int64_t frames_kept = 10'000;
  double duration_seconds = 3'600;
  int streams = 16;
  std::int64_t decoded_bytes = std::int64_t{2} << 30;  // per clip
  double deadline_seconds = 60;                        // for one decode
  // Audio
  int channels = 8;
  int sample_rate_hz = 384'000;
  // Meshes
  std::int64_t vertices = 10'000'000;
  std::int64_t faces = 10'000'000;
};

}  // namespace millrace
