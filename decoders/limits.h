// Limits on what a file may declare. They are checked from the headers, before memory is allocated,
// so a file of 1 kB that declares 10^9 pixels is refused at no cost.
//
//   DecodeLimits limits{.image_pixels = 1'000'000, .deadline_seconds = 5};
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
  double deadline_seconds = 60;                        // per decode
  // Audio
  int channels = 8;
  int sample_rate_hz = 384'000;
  // Meshes
  std::int64_t vertices = 10'000'000;
  std::int64_t faces = 10'000'000;
};

}  // namespace millrace
