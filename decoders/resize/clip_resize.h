// Private: resizes a box of a picture as Pillow's resize() with BILINEAR does, in the same
// fixed-point arithmetic. Pixels have four bytes, of which three are used.
#pragma once

#include <millrace/decoders/video/clip_writer.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::detail {

class BoxResizer {
 public:
  // `pixels` has rows of `stride` pixels. The planes stay valid until the next call. One channel:
  // grey by Pillow's convert("L"), after resizing.
  Planes resize(const std::uint32_t* pixels, std::size_t stride, CropBox box, FrameSize size,
                int channels);

 private:
  // For each output pixel: the first input pixel, and `taps` weights.
  struct Weights {
    int from = 0, to = 0;
    std::size_t taps = 0;
    std::vector<int> starts;
    std::vector<std::int32_t> values;
  };
  static void prepare(Weights& weights, int from, int to);
  void across(const std::uint32_t* pixels, std::size_t stride, CropBox box, int width);
  void down(FrameSize size);
  void to_planes(const std::uint32_t* pixels, std::size_t stride, FrameSize size, int channels);

  Weights columns_, rows_;
  std::vector<std::uint32_t> narrowed_, result_;
  std::vector<std::uint8_t> planes_;
};

}  // namespace millrace::detail
