#include "frame_convert.h"

#include <millrace/decoders/image/place_rows.h>

#include <cstdlib>
#include <string>

extern "C" {
#include <libavutil/opt.h>
}

namespace millrace::detail {
namespace {

constexpr int resizing = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;
constexpr int as_the_ffmpeg_command = SWS_BICUBIC;

// swscale writes whole vectors, also past the end of a row.
std::ptrdiff_t padded(int width) {
  return (static_cast<std::ptrdiff_t>(width) + 63) / 64 * 64 + 64;
}

void crop(AVFrame& frame, CropBox box) {
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  if (format == nullptr || (box.width == frame.width && box.height == frame.height)) return;
  // Rounded down to the chroma grid: colour planes cannot start between two samples.
  box.x &= ~((1 << format->log2_chroma_w) - 1);
  box.y &= ~((1 << format->log2_chroma_h) - 1);
  frame.crop_left = static_cast<std::size_t>(box.x);
  frame.crop_top = static_cast<std::size_t>(box.y);
  frame.crop_right = static_cast<std::size_t>(frame.width - box.x - box.width);
  frame.crop_bottom = static_cast<std::size_t>(frame.height - box.y - box.height);
  av_frame_apply_cropping(&frame, AV_FRAME_CROP_UNALIGNED);
}

}  // namespace

Status FrameConverter::prepare(const Setup& setup) {
  if (scaler_ != nullptr && setup == setup_) return {};
  scaler_.reset(sws_alloc_context());
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(setup.from_format));
  if (scaler_ == nullptr || format == nullptr) return Error("no such pixel format");
  SwsContext* s = scaler_.get();
  av_opt_set_int(s, "srcw", setup.from_width, 0);
  av_opt_set_int(s, "srch", setup.from_height, 0);
  av_opt_set_int(s, "src_format", setup.from_format, 0);
  av_opt_set_int(s, "dstw", setup.to_width, 0);
  av_opt_set_int(s, "dsth", setup.to_height, 0);
  av_opt_set_int(s, "dst_format", setup.to_format, 0);
  const bool is_plain = setup.to_format == AV_PIX_FMT_RGB24;
  av_opt_set_int(s, "sws_flags", is_plain ? as_the_ffmpeg_command : resizing, 0);
  if (format->log2_chroma_h == 1) av_opt_set_int(s, "src_v_chr_pos", 128, 0);
  av_opt_set_int(s, "src_range", setup.range == AVCOL_RANGE_JPEG ? 1 : 0, 0);
  if (int code = sws_init_context(s, nullptr, nullptr); code < 0) {
    scaler_.reset();
    return Error(std::string("cannot convert pixel format ") + format->name + " (" +
                 av_error_text(code) + ")");
  }
  int *in_table = nullptr, *out_table = nullptr;
  int in_full = 0, out_full = 0, brightness = 0, contrast = 0, saturation = 0;
  if (sws_getColorspaceDetails(s, &in_table, &in_full, &out_table, &out_full, &brightness,
                               &contrast, &saturation) >= 0) {
    // yuvj formats and grey are full range by name; swscale knows these itself.
    if (setup.range == AVCOL_RANGE_JPEG) in_full = 1;
    const int* table = sws_getCoefficients(setup.matrix);
    sws_setColorspaceDetails(s, table, in_full, table, out_full, brightness, contrast, saturation);
  }
  stride_ = padded(setup.to_width);
  scratch_.resize(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(setup.to_height) *
                  3);
  interleaved_.resize(is_plain ? 3 * static_cast<std::size_t>(stride_) : 0);
  interleaved_.resize(interleaved_.size() * static_cast<std::size_t>(setup.to_height));
  setup_ = setup;
  return {};
}

Status FrameConverter::convert_interleaved(const AVFrame& frame, Planes& planes) {
  const std::ptrdiff_t row_bytes = 3 * stride_;
  std::uint8_t* to[4] = {interleaved_.data()};
  const int strides[4] = {static_cast<int>(row_bytes)};
  if (sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, to, strides) !=
      frame.height) {
    return Error("the colour conversion failed");
  }
  const std::ptrdiff_t plane = stride_ * frame.height;
  std::uint8_t* const red = scratch_.data();
  for (std::ptrdiff_t y = 0; y < frame.height; ++y) {
    std::uint8_t* const row = red + y * stride_;
    split_rgb_row(interleaved_.data() + y * row_bytes, frame.width, row, row + plane,
                  row + 2 * plane);
  }
  planes = {{red, red + plane, red + 2 * plane}, {stride_, stride_, stride_}};
  return {};
}

Status FrameConverter::convert(AVFrame& frame, Fit fit, FrameSize stored_size, int channels,
                               Planes& planes) {
  crop(frame, crop_for(fit, {frame.height, frame.width}, stored_size));
  Setup setup{.from_width = frame.width,
              .from_height = frame.height,
              .from_format = frame.format,
              .matrix = frame.colorspace,
              .range = frame.color_range,
              .to_width = stored_size.width,
              .to_height = stored_size.height,
              .to_format = channels == 1 ? AV_PIX_FMT_GRAY8 : AV_PIX_FMT_GBRP};
  const bool is_plain = channels == 3 && setup.keeps_size();
  if (is_plain) setup.to_format = AV_PIX_FMT_RGB24;
  if (Status status = prepare(setup); !status.ok()) return status;
  if (is_plain) return convert_interleaved(frame, planes);
  const std::size_t plane =
      static_cast<std::size_t>(stride_) * static_cast<std::size_t>(stored_size.height);
  // GBRP keeps green first.
  std::uint8_t* to[4] = {scratch_.data(), scratch_.data() + plane, scratch_.data() + 2 * plane};
  const int stride = static_cast<int>(stride_);
  const int strides[4] = {stride, stride, stride, 0};
  const int rows =
      sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, to, strides);
  if (rows != stored_size.height) return Error("the colour conversion failed");
  planes = channels == 1 ? Planes{{to[0]}, {stride_}}
                         : Planes{{to[2], to[0], to[1]}, {stride_, stride_, stride_}};
  return {};
}

Orientation orientation_of(const AVStream* stream) {
  const std::int32_t* m = display_matrix(stream);
  if (m == nullptr) return {};
  // x' = m0 x + m3 y and y' = m1 x + m4 y; only quarter turns are applied.
  if (std::abs(std::int64_t{m[0]}) >= std::abs(std::int64_t{m[1]})) {
    return {.transpose = false, .flip_x = m[0] < 0, .flip_y = m[4] < 0};
  }
  return {.transpose = true, .flip_x = m[3] < 0, .flip_y = m[1] < 0};
}

}  // namespace millrace::detail
