// The options and the memory layout of a decoded clip; the same for video and GIF.
//
//   ClipOptions options{.frames = FrameSelection::first(17), .height = 128, .width = 128,
//                       .layout = ClipLayout::cthw};
//   std::vector<std::uint8_t> clip(clip_bytes(options, /*own_height=*/720, /*own_width=*/1280));
#pragma once

#include <millrace/decoders/video/frame_selection.h>
#include <millrace/pipeline/data/shape.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

enum class ClipLayout {
  thwc,  // [frames, height, width, channels]
  cthw,  // [channels, frames, height, width], as video models expect it
};

// How a frame is resized to another aspect ratio.
enum class Fit {
  centre_crop,  // the shorter side fits, the middle of the longer side is kept
  stretch,
};

struct ClipOptions {
  FrameSelection frames = FrameSelection::first(17);
  int height = 0;  // 0: that of the clip; then `width` must be 0 too
  int width = 0;
  Fit fit = Fit::centre_crop;
  int channels = 3;  // 3: RGB; 1: grey
  ClipLayout layout = ClipLayout::thwc;
  ShortClip short_clip = ShortClip::repeat_last;
  // Video: true makes damage an error; false decodes as far as possible and counts the damage in
  // ClipResult::damaged. A broken frame of a GIF is always an error.
  bool strict = false;
  // Return the Adler-32 of each decoded frame before colour conversion and resizing, as printed by
  // `ffmpeg -f framecrc`. For video only.
  bool checksums = false;
};

struct ClipResult {
  std::int64_t valid = 0;                  // number of frames from the clip; the rest is filled
  std::vector<double> times_seconds{};     // of the valid frames, from the first frame of the clip
  std::vector<std::uint32_t> checksums{};  // of the valid frames, if requested
  std::int64_t decoded = 0;                // number of frames that had to be decoded
  // Number of packets that could not be read or decoded completely.
  std::int64_t damaged = 0;
};

// The shape of the result, given the size of the clip in the file.
inline Shape clip_shape(const ClipOptions& options, int own_height, int own_width) {
  std::int64_t h = options.height > 0 ? options.height : own_height;
  std::int64_t w = options.height > 0 ? options.width : own_width;
  if (options.layout == ClipLayout::thwc) return {options.frames.count, h, w, options.channels};
  return {options.channels, options.frames.count, h, w};
}

inline std::size_t clip_bytes(const ClipOptions& options, int own_height, int own_width) {
  return static_cast<std::size_t>(clip_shape(options, own_height, own_width).elements());
}

}  // namespace millrace
