// Private: the blocks of a GIF file, and the canvas that its frames are drawn on.
#pragma once

#include "gif_lzw.h"

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::detail {

struct GifFrame {
  int x = 0, y = 0, width = 0, height = 0;
  bool interlaced = false;
  int transparent = -1;  // index of the transparent colour; -1: none
  int disposal = 0;      // 0, 1: keep; 2: clear to background; 3 and more: restore previous
  int delay_ms = 0;
  std::span<const std::uint8_t> palette{};  // red, green, blue; empty: the index is a grey level
  std::span<const std::uint8_t> data{};     // minimum code size and sub-blocks
};

struct GifFile {
  int width = 0, height = 0;
  int background = 0;
  int loops = 1;
  std::vector<GifFrame> frames{};
};

// Maps the n-th row in the file to its row on the screen (interlacing).
class GifRowOrder {
 public:
  GifRowOrder(int height, bool interlaced) : height_(height), interlaced_(interlaced) {}
  int next();

 private:
  int height_;
  bool interlaced_;
  int row_ = 0, step_ = 8, pass_ = 0;
};

// Reads the blocks without decompressing. Ignores everything after the first broken block. With
// `first_only` it stops after the first frame and checks no limits: those of images apply.
Status parse_gif(std::span<const std::uint8_t> bytes, const DecodeLimits& limits, GifFile& file,
                 bool first_only = false);

// Note [Pillow's canvas]. Programs differ where the GIF format leaves things open; we follow
// Pillow. Outside the first frame, and where that is transparent, the canvas has the colour of the
// transparent index, or else of index 0. Disposal 0 means "as the frame before". The canvas before
// the first frame is restored only if the first frame is transparent. The background is the
// transparent colour if the frame has one.
class GifCanvas {
 public:
  using Palette = std::array<std::uint32_t, 256>;

  void start(const GifFile& file);
  // Disposes of the frame before and draws the next one. Returns false if its data is broken.
  bool draw(const GifFrame& frame, bool is_first);
  // Red, green and blue in the low three bytes.
  const std::vector<std::uint32_t>& pixels() const { return pixels_; }

 private:
  struct Box {
    int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  };
  Box clip(const GifFrame& frame) const;
  void dispose();
  void plan_disposal(const GifFrame& frame, bool is_first);
  void paint(const GifFrame& frame, std::span<const std::uint8_t> indices);

  int width_ = 0, height_ = 0, background_ = 0;
  std::vector<std::uint32_t> pixels_;
  LzwDecoder lzw_;
  Palette palette_{};
  // The disposal to apply before the next frame.
  enum class Undo { nothing, fill, restore } undo_ = Undo::nothing;
  Box undo_box_;
  std::uint32_t undo_colour_ = 0;
  std::vector<std::uint32_t> undo_pixels_;
};

}  // namespace millrace::detail
