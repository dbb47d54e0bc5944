// Private: converts a decoded frame to red, green and blue planes (or grey) of the requested size.
// Cropping, resizing and colour conversion are one pass of swscale.
//
// Note [Colour]. Matrix and range are those of the frame; if it has none, BT.601 with limited range
// is assumed, as in FFmpeg. Frames that keep their size are converted with the defaults of the
// ffmpeg program, so that they are bit-identical to its output. Other frames are resized with exact
// rounding and full chroma interpolation, to planes: swscale has vector code for planes, but not
// for interleaved RGB.
#pragma once

#include "clip_writer.h"

#include <millrace/decoders/container/libav.h>
#include <millrace/pipeline/base/error.h>

#include <cstdint>
#include <vector>

namespace millrace::detail {

class FrameConverter {
 public:
  // Crops `frame` on the way. `planes` stay valid until the next call.
  Status convert(AVFrame& frame, Fit fit, FrameSize stored_size, int channels, Planes& planes);

 private:
  struct Setup {
    int from_width = 0, from_height = 0, from_format = -1;
    int matrix = -1, range = -1;
    int to_width = 0, to_height = 0, to_format = -1;
    bool keeps_size() const { return from_width == to_width && from_height == to_height; }
    bool operator==(const Setup&) const = default;
  };
  Status prepare(const Setup& setup);
  Status convert_interleaved(const AVFrame& frame, Planes& planes);

  ScalerHandle scaler_;
  Setup setup_;
  std::vector<std::uint8_t> scratch_, interleaved_;
  std::ptrdiff_t stride_ = 0;
};

Orientation orientation_of(const AVStream* stream);

}  // namespace millrace::detail
