#include "clip_writer.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace millrace::detail {

CropBox crop_for(Fit fit, FrameSize stored, FrameSize wanted) {
  CropBox box{0, 0, stored.width, stored.height};
  if (fit == Fit::stretch) return box;
  const std::int64_t sw = stored.width, sh = stored.height, w = wanted.width, h = wanted.height;
  if (sw * h > sh * w) {
    box.width = static_cast<int>(std::max<std::int64_t>(1, (2 * sh * w + h) / (2 * h)));
    box.x = (stored.width - box.width) / 2;
  } else if (sw * h < sh * w) {
    box.height = static_cast<int>(std::max<std::int64_t>(1, (2 * sw * h + w) / (2 * w)));
    box.y = (stored.height - box.height) / 2;
  }
  return box;
}

Status check_clip(const ClipOptions& options, const DecodeLimits& limits, FrameSize own,
                  std::size_t destination_bytes, FrameSize& size) {
  auto usage = [](std::string reason) {
    return Error(std::move(reason)).stage("clip").kind(ErrorKind::usage);
  };
  if (Status status = options.frames.check(); !status.ok()) return status;
  if (options.channels != 1 && options.channels != 3) {
    return usage("`channels` must be 1 or 3, but is " + std::to_string(options.channels));
  }
  if (options.height < 0 || options.width < 0 || (options.height == 0) != (options.width == 0)) {
    return usage("`height` and `width` must both be given or both be 0, but are " +
                 std::to_string(options.height) + " and " + std::to_string(options.width));
  }
  size = options.height > 0 ? FrameSize{options.height, options.width} : own;
  auto beyond = [](const std::string& what, std::int64_t value, std::int64_t limit,
                   const char* option) {
    return Error(what + " is " + std::to_string(value) + ", more than the limit of " +
                 std::to_string(limit))
        .hint(std::string("Raise DecodeLimits::") + option);
  };
  if (options.frames.count > limits.frames_kept) {
    return beyond("the number of frames", options.frames.count, limits.frames_kept, "frames_kept");
  }
  const std::int64_t pixels = std::int64_t{size.height} * size.width;
  if (pixels > limits.frame_pixels) {
    return beyond("the number of pixels of a frame", pixels, limits.frame_pixels, "frame_pixels");
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(pixels * options.channels, options.frames.count, &bytes) ||
      bytes > limits.decoded_bytes) {
    return beyond("the number of bytes of the clip", bytes, limits.decoded_bytes, "decoded_bytes");
  }
  if (static_cast<std::size_t>(bytes) != destination_bytes) {
    return usage("the destination must have " + std::to_string(bytes) + " bytes, but has " +
                 std::to_string(destination_bytes));
  }
  return {};
}

std::uint8_t* ClipWriter::row(std::size_t slot, std::size_t channel, std::size_t y) const {
  if (layout_ == ClipLayout::thwc) {
    return to_.data() + (slot * height_ + y) * width_ * channels_ + channel;
  }
  return to_.data() + ((channel * frames_ + slot) * height_ + y) * width_;
}

void ClipWriter::put(std::size_t slot, const Planes& planes, Orientation orientation) {
  if (!orientation.is_upright()) return put_turned(slot, planes, orientation);
  for (std::size_t y = 0; y < height_; ++y) {
    auto line = [&](std::size_t c) {
      return planes.data[c] + static_cast<std::ptrdiff_t>(y) * planes.stride[c];
    };
    if (layout_ == ClipLayout::cthw || channels_ == 1) {
      for (std::size_t c = 0; c < channels_; ++c) std::memcpy(row(slot, c, y), line(c), width_);
      continue;
    }
    const std::uint8_t *red = line(0), *green = line(1), *blue = line(2);
    std::uint8_t* out = row(slot, 0, y);
    for (std::size_t x = 0; x < width_; ++x) {
      out[3 * x] = red[x];
      out[3 * x + 1] = green[x];
      out[3 * x + 2] = blue[x];
    }
  }
}

void ClipWriter::put_turned(std::size_t slot, const Planes& planes, Orientation turn) {
  const std::size_t step = layout_ == ClipLayout::thwc ? channels_ : 1;
  for (std::size_t c = 0; c < channels_; ++c) {
    for (std::size_t y = 0; y < height_; ++y) {
      std::uint8_t* out = row(slot, c, y);
      const std::size_t v = turn.flip_y ? height_ - 1 - y : y;
      for (std::size_t x = 0; x < width_; ++x) {
        const std::size_t u = turn.flip_x ? width_ - 1 - x : x;
        const auto from_y = static_cast<std::ptrdiff_t>(turn.transpose ? u : v);
        const auto from_x = static_cast<std::ptrdiff_t>(turn.transpose ? v : u);
        out[x * step] = planes.data[c][from_y * planes.stride[c] + from_x];
      }
    }
  }
}

void ClipWriter::copy(std::size_t from, std::size_t to) {
  const bool planar = layout_ == ClipLayout::cthw;
  const std::size_t bytes = height_ * width_ * (planar ? 1 : channels_);
  for (std::size_t c = 0; c < (planar ? channels_ : 1); ++c) {
    std::memcpy(row(to, c, 0), row(from, c, 0), bytes);
  }
}

bool ClipWriter::fill_rest(std::size_t valid, ShortClip policy) {
  if (valid >= frames_) return true;
  if (policy == ShortClip::error) return false;
  const bool planar = layout_ == ClipLayout::cthw;
  const std::size_t bytes = height_ * width_ * (planar ? 1 : channels_);
  for (std::size_t slot = valid; slot < frames_; ++slot) {
    if (policy == ShortClip::black || valid == 0) {
      for (std::size_t c = 0; c < (planar ? channels_ : 1); ++c) {
        std::memset(row(slot, c, 0), 0, bytes);
      }
    } else {
      copy(policy == ShortClip::loop ? slot % valid : valid - 1, slot);
    }
  }
  return true;
}

}  // namespace millrace::detail
