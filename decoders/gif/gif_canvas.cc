#include "gif_file.h"

#include <algorithm>

namespace millrace::detail {
namespace {

constexpr std::uint32_t opaque_black = 0;

void load_palette(const GifFrame& frame, GifCanvas::Palette& palette) {
  if (frame.palette.empty()) {
    for (std::uint32_t i = 0; i < 256; ++i) palette[i] = i * 0x010101U;
    return;
  }
  palette.fill(opaque_black);
  for (std::size_t i = 0; i < frame.palette.size() / 3; ++i) {
    const std::uint8_t* rgb = frame.palette.data() + 3 * i;
    palette[i] = std::uint32_t{rgb[0]} | std::uint32_t{rgb[1]} << 8 | std::uint32_t{rgb[2]} << 16;
  }
}

}  // namespace

int GifRowOrder::next() {
  if (!interlaced_) return row_++;
  const int row = row_;
  row_ += step_;
  while (row_ >= height_ && pass_ < 3) {
    static constexpr int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    ++pass_;
    row_ = starts[pass_];
    step_ = steps[pass_];
  }
  return row;
}

void GifCanvas::start(const GifFile& file) {
  width_ = file.width;
  height_ = file.height;
  background_ = file.background;
  pixels_.resize(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
  undo_ = Undo::nothing;
}

GifCanvas::Box GifCanvas::clip(const GifFrame& frame) const {
  return {std::min(frame.x, width_), std::min(frame.y, height_),
          std::min(frame.x + frame.width, width_), std::min(frame.y + frame.height, height_)};
}

void GifCanvas::dispose() {
  const Box& box = undo_box_;
  const auto columns = static_cast<std::size_t>(box.x1 - box.x0);
  for (int y = box.y0; undo_ != Undo::nothing && y < box.y1; ++y) {
    std::uint32_t* row = pixels_.data() + std::ptrdiff_t{y} * width_ + box.x0;
    if (undo_ == Undo::fill) {
      std::fill_n(row, columns, undo_colour_);
    } else {
      std::copy_n(undo_pixels_.data() + static_cast<std::size_t>(y - box.y0) * columns, columns,
                  row);
    }
  }
  undo_ = Undo::nothing;
}

void GifCanvas::plan_disposal(const GifFrame& frame, bool is_first) {
  undo_ = Undo::nothing;
  undo_box_ = clip(frame);
  if (frame.disposal < 2) return;
  const auto transparent = static_cast<std::size_t>(std::max(frame.transparent, 0));
  if (frame.disposal == 2 || (is_first && frame.transparent >= 0)) {
    undo_ = Undo::fill;
    undo_colour_ =
        palette_[frame.transparent >= 0 ? transparent : static_cast<std::size_t>(background_)];
  } else if (!is_first) {
    undo_ = Undo::restore;
    undo_pixels_.clear();
    for (int y = undo_box_.y0; y < undo_box_.y1; ++y) {
      const std::uint32_t* row = pixels_.data() + std::ptrdiff_t{y} * width_;
      undo_pixels_.insert(undo_pixels_.end(), row + undo_box_.x0, row + undo_box_.x1);
    }
  }
}

bool GifCanvas::draw(const GifFrame& frame, bool is_first) {
  dispose();
  load_palette(frame, palette_);
  if (is_first) {
    std::ranges::fill(pixels_, palette_[static_cast<std::size_t>(std::max(frame.transparent, 0))]);
  }
  plan_disposal(frame, is_first);
  if (frame.width == 0 || frame.height == 0) return true;
  const auto count = static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(frame.height);
  auto indices = lzw_.decode(frame.data, count);
  if (indices.size() < count) return false;
  paint(frame, indices);
  return true;
}

void GifCanvas::paint(const GifFrame& frame, std::span<const std::uint8_t> indices) {
  const Box box = clip(frame);
  const int columns = box.x1 - box.x0;
  GifRowOrder order(frame.height, frame.interlaced);
  for (int line = 0; line < frame.height; ++line) {
    const int y = frame.y + order.next();
    if (y >= box.y1) continue;
    const std::uint8_t* from = indices.data() + std::ptrdiff_t{line} * frame.width;
    std::uint32_t* to = pixels_.data() + std::ptrdiff_t{y} * width_ + box.x0;
    if (frame.transparent < 0) {
      for (int x = 0; x < columns; ++x) to[x] = palette_[from[x]];
      continue;
    }
    for (int x = 0; x < columns; ++x) {
      to[x] = from[x] == frame.transparent ? to[x] : palette_[from[x]];
    }
  }
}

}  // namespace millrace::detail
