// What a clip of frames looks like in memory, and how it gets there; the same for video and GIF.
//
//   ClipOptions options{.frames = FrameSelection::first(17), .height = 128, .width = 128,
//                       .layout = ClipLayout::cthw};
//   std::vector<std::uint8_t> clip(clip_bytes(options, info.height, info.width));
#pragma once

#include <millrace/decoders/video/frame_selection.h>
#include <millrace/pipeline/data/shape.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

enum class ClipLayout {
  thwc,  // frame by frame, colours interleaved
  cthw,  // colour by colour, as video models take it
};

// How a frame is brought to a size of another aspect.
enum class Fit {
  centre_crop,  // the shorter side fills, the middle of the longer one is kept
  stretch,
};

struct ClipOptions {
  FrameSelection frames = FrameSelection::first(17);
  int height = 0;  // 0: the clip's own; then `width` must be 0 too
  int width = 0;
  Fit fit = Fit::centre_crop;
  int channels = 3;  // 3: RGB; 1: grey
  ClipLayout layout = ClipLayout::thwc;
  ShortClip short_clip = ShortClip::repeat_last;
  // Video: damage is an error. Otherwise what can be decoded is, and ClipResult::damaged counts. A
  // frame of a GIF whose data are broken is always an error.
  bool strict = false;
  // Also tell the Adler-32 of each frame as it was decoded, before colour conversion and resizing:
  // what `ffmpeg -f framecrc` prints. For video only.
  bool checksums = false;
};

struct ClipResult {
  std::int64_t valid = 0;                  // frames that came from the clip; the rest is filled
  std::vector<double> times_seconds{};     // of the valid ones, from the first frame of the clip
  std::vector<std::uint32_t> checksums{};  // of the valid ones, if asked for
  std::int64_t decoded = 0;                // frames that had to be decoded for it
  // Packets that could not be read or decoded whole; it went on after them.
  std::int64_t damaged = 0;
};

// The shape of the result, given the clip's own size.
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
