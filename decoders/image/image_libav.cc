// BMP, TIFF and the rarer formats, through libav's decoders. The whole file is passed as one packet
// to the decoder that its first bytes indicate; no demuxer or protocol is used.
#include "image_reader.h"

#include <millrace/decoders/container/libav.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace millrace::detail {
namespace {

AVCodecID codec_of(ImageFormat format, Bytes bytes) {
  switch (format) {
    case ImageFormat::bmp:
      return AV_CODEC_ID_BMP;
    case ImageFormat::tiff:
      return AV_CODEC_ID_TIFF;
    case ImageFormat::pnm: {
      const char kind = static_cast<char>(raw(bytes)[1]);
      if (kind == '1' || kind == '4') return AV_CODEC_ID_PBM;
      if (kind == '2' || kind == '5') return AV_CODEC_ID_PGM;
      if (kind == '7') return AV_CODEC_ID_PAM;
      return kind == 'F' || kind == 'f' ? AV_CODEC_ID_PFM : AV_CODEC_ID_PPM;
    }
    case ImageFormat::tga:
      return AV_CODEC_ID_TARGA;
    case ImageFormat::sgi:
      return AV_CODEC_ID_SGI;
    case ImageFormat::sun:
      return AV_CODEC_ID_SUNRAST;
    case ImageFormat::pcx:
      return AV_CODEC_ID_PCX;
    case ImageFormat::dds:
      return AV_CODEC_ID_DDS;
    case ImageFormat::dpx:
      return AV_CODEC_ID_DPX;
    case ImageFormat::exr:
      return AV_CODEC_ID_EXR;
    case ImageFormat::psd:
      return AV_CODEC_ID_PSD;
    case ImageFormat::qoi:
      return AV_CODEC_ID_QOI;
    case ImageFormat::jpeg2000:
      return AV_CODEC_ID_JPEG2000;
    default:
      return AV_CODEC_ID_NONE;
  }
}

// Uses the decoder's own message if there is one.
std::string message_of(int code) {
  const std::string complaint = take_av_complaint();
  return complaint.empty() ? av_error_text(code) : complaint;
}

// The header, as the decoder knows it when it first requests memory.
struct Asked {
  int width = 0, height = 0;
  AVPixelFormat format = AV_PIX_FMT_NONE;
};

int note_and_refuse(AVCodecContext* context, AVFrame* frame, int) {
  *static_cast<Asked*>(context->opaque) = {frame->width, frame->height,
                                           static_cast<AVPixelFormat>(frame->format)};
  return AVERROR_EXIT;
}

// Runs tiles and slices one after the other until the deadline. See Note [Deadlines].
int run_in_time(AVCodecContext* context, int (*job)(AVCodecContext*, void*), void* arguments,
                int* results, int count, int size) {
  const auto& deadline = *static_cast<const Deadline*>(context->opaque);
  for (int i = 0; i < count; ++i) {
    if (deadline.expired()) return AVERROR_EXIT;
    const int code = job(context, static_cast<char*>(arguments) + std::ptrdiff_t{i} * size);
    if (results != nullptr) results[i] = code;
  }
  return 0;
}

int run_numbered_in_time(AVCodecContext* context, int (*job)(AVCodecContext*, void*, int, int),
                         void* arguments, int* results, int count) {
  const auto& deadline = *static_cast<const Deadline*>(context->opaque);
  for (int i = 0; i < count; ++i) {
    if (deadline.expired()) return AVERROR_EXIT;
    const int code = job(context, arguments, i, 0);
    if (results != nullptr) results[i] = code;
  }
  return 0;
}

// Decodes the only frame. With `asked`, stops when the decoder requests memory for it.
int decode(Bytes bytes, ImageFormat format, const ReadRequest& request, Asked* asked,
           FrameHandle& frame) {
  capture_av_log();
  take_av_complaint();
  const AVCodec* codec = avcodec_find_decoder(codec_of(format, bytes));
  if (codec == nullptr) return AVERROR_DECODER_NOT_FOUND;
  Deadline deadline = request.deadline;  // before the context, which points to it
  CodecHandle context(avcodec_alloc_context3(codec));
  PacketHandle packet(av_packet_alloc());
  frame.reset(av_frame_alloc());
  if (!context || !packet || !frame) return AVERROR(ENOMEM);
  context->thread_count = 1;
  context->thread_type = FF_THREAD_SLICE;
  context->max_pixels = request.limits.image_pixels;
  // Not for TIFF, whose decoder would refuse every unknown field: see tiff_is_whole() instead.
  const bool strict = !request.tolerant && format != ImageFormat::tiff;
  context->err_recognition = strict ? AV_EF_EXPLODE : 0;
  if (asked != nullptr) {
    context->opaque = asked;
    context->get_buffer2 = note_and_refuse;
  } else {
    context->opaque = &deadline;
    context->execute = run_in_time;
    context->execute2 = run_numbered_in_time;
  }
  if (int code = avcodec_open2(context.get(), codec, nullptr); code < 0) return code;
  // A copy, because decoders read past the end into libav's padding.
  if (int code = av_new_packet(packet.get(), static_cast<int>(bytes.size())); code < 0) return code;
  std::memcpy(packet->data, bytes.data(), bytes.size());
  if (int code = avcodec_send_packet(context.get(), packet.get()); code < 0) return code;
  (void)avcodec_send_packet(context.get(), nullptr);
  return avcodec_receive_frame(context.get(), frame.get());
}

bool is_rgb_or_grey(const AVPixFmtDescriptor& format) {
  constexpr std::uint64_t simple = AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL;
  const bool grey = format.nb_components <= 2;
  return ((format.flags & simple) != 0 || grey) && (format.flags & AV_PIX_FMT_FLAG_FLOAT) == 0 &&
         (format.flags & AV_PIX_FMT_FLAG_BAYER) == 0;
}

int channels_of(const AVPixFmtDescriptor& format) {
  if ((format.flags & AV_PIX_FMT_FLAG_PAL) != 0) return 4;
  if (format.nb_components <= 2) return format.nb_components;
  return (format.flags & AV_PIX_FMT_FLAG_ALPHA) != 0 ? 4 : 3;
}

int shown_channels(const AVPixFmtDescriptor& format) {
  return is_rgb_or_grey(format) ? channels_of(format) : 3;
}

// Some decoders know only at the end whether there is alpha; the header declared `channels`.
bool can_become(const AVPixFmtDescriptor& format, int channels) {
  const int own = shown_channels(format);
  const bool by_component = is_rgb_or_grey(format) && (format.flags & AV_PIX_FMT_FLAG_PAL) == 0;
  return own == channels || (by_component && (own >= 3) == (channels >= 3));
}

// Exact for every depth and order of components: each is read as an integer. Alpha that the header
// declared but the frame does not have is opaque.
void read_components(const AVFrame& frame, const AVPixFmtDescriptor& format, int channels,
                     std::uint8_t* pixels, std::size_t stride) {
  const std::uint8_t* planes[4] = {frame.data[0], frame.data[1], frame.data[2], frame.data[3]};
  const int flipped = frame.format == AV_PIX_FMT_MONOWHITE ? 255 : 0;
  std::vector<std::uint16_t> line(static_cast<std::size_t>(frame.width));
  for (int y = 0; y < frame.height; ++y) {
    std::uint8_t* row = pixels + static_cast<std::size_t>(y) * stride;
    for (int c = 0; c < channels; ++c) {
      if (c >= format.nb_components) {
        for (int x = 0; x < frame.width; ++x) row[x * channels + c] = 255;
        continue;
      }
      const int depth = format.comp[c].depth;
      av_read_image_line2(line.data(), planes, frame.linesize, &format, 0, y, c, frame.width, 0,
                          sizeof(std::uint16_t));
      for (int x = 0; x < frame.width; ++x) {
        const int value = line[static_cast<std::size_t>(x)];
        const int scaled = depth >= 8 ? value >> (depth - 8) : value * 255 / ((1 << depth) - 1);
        row[x * channels + c] = static_cast<std::uint8_t>(scaled ^ flipped);
      }
    }
  }
}

// libav's palettes are 32-bit integers in native byte order, alpha in the highest byte.
void read_palette(const AVFrame& frame, std::uint8_t* pixels, std::size_t stride) {
  std::uint32_t palette[256];
  std::memcpy(palette, frame.data[1], sizeof palette);
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* from = frame.data[0] + std::ptrdiff_t{y} * frame.linesize[0];
    std::uint8_t* to = pixels + static_cast<std::size_t>(y) * stride;
    for (int x = 0; x < frame.width; ++x, to += 4) {
      const std::uint32_t colour = palette[from[x]];
      for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(colour >> (16 - 8 * c));
      to[3] = static_cast<std::uint8_t>(colour >> 24);
    }
  }
}

// YUV and floats. YUV in pictures has the full range unless the file says otherwise.
Status scale_colours(const AVFrame& frame, ImageFormat format, bool full_range,
                     std::uint8_t* pixels, std::size_t stride) {
  ScalerHandle scaler(sws_getContext(
      frame.width, frame.height, static_cast<AVPixelFormat>(frame.format), frame.width,
      frame.height, AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_FULL_CHR_H_INT | SWS_ACCURATE_RND, nullptr,
      nullptr, nullptr));
  if (!scaler) {
    return image_error(format, "its pixel format has no conversion to RGB", "Convert the file");
  }
  const int* coefficients = sws_getCoefficients(SWS_CS_ITU601);
  sws_setColorspaceDetails(scaler.get(), coefficients, full_range ? 1 : 0, coefficients, 1, 0,
                           1 << 16, 1 << 16);
  std::uint8_t* planes[1] = {pixels};
  const int strides[1] = {static_cast<int>(stride)};
  sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, planes, strides);
  return {};
}

// Refuses files that libav's decoders misread without an error.
const char* misread_by_libav(Bytes bytes, ImageFormat format, const TiffFacts& tiff) {
  constexpr int palette = 3, grey_targa = 3;
  if (format == ImageFormat::tga && (raw(bytes)[2] & 7) == grey_targa && raw(bytes)[16] == 16) {
    return "grey with alpha in a TGA";
  }
  if (tiff.compression == 6 || tiff.compression == 7) return "JPEG compression inside of a TIFF";
  if (tiff.tiled) return "a TIFF made of tiles";
  if (tiff.low_bits_first && tiff.compression == 1) return "a TIFF with its low bits first";
  if (tiff.meaning == palette && tiff.samples > 1) return "a TIFF of palette and alpha";
  return nullptr;
}

// As Pillow does it.
void unmultiply(std::uint8_t* pixels, std::size_t stride, const Header& header) {
  for (std::int64_t y = 0; y < header.height; ++y) {
    std::uint8_t* p = pixels + static_cast<std::size_t>(y) * stride;
    for (std::int64_t x = 0; x < header.width; ++x, p += 4) {
      if (p[3] == 0) continue;
      for (int c = 0; c < 3; ++c)
        p[c] = static_cast<std::uint8_t>(std::min(255, 255 * p[c] / p[3]));
    }
  }
}

int big_endian(const std::uint8_t* at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value > INT32_MAX ? INT32_MAX : static_cast<int>(value);
}

// libav's PSD decoder unpacks the whole picture before it requests memory, and leaks it when that
// is refused. So the header is read here; see tests/fuzz/regressions/image.
Status read_psd_header(Bytes bytes, Header& header) {
  if (bytes.size() < 26) return damaged_error(header.format, "its header is cut off");
  const std::uint8_t* data = raw(bytes);
  const int channels = big_endian(data + 12, 2), mode = big_endian(data + 24, 2);
  header.height = big_endian(data + 14, 4);
  header.width = big_endian(data + 18, 4);
  header.bits = big_endian(data + 22, 2);
  if (mode == 0) {  // black and white
    header.channels = 1;
  } else if (mode == 1 || mode == 8) {  // grey and duotone; floats are scaled to colours
    header.channels = header.bits == 32 ? 3 : channels;
  } else if (mode == 2) {  // palette
    header.channels = 4;
  } else {  // RGB; CMYK, which libav gives as RGB
    header.channels = mode == 4 ? channels - 1 : channels;
  }
  if (mode > 8 || header.channels < 1 || header.channels > 4) {
    return image_error(
        header.format,
        "it has " + std::to_string(channels) + " channels in colour mode " + std::to_string(mode),
        "Convert the file to RGB");
  }
  return {};
}

// libav's Sun raster decoder counts bits in 32 bits and aborts the process when that overflows.
Status check_sun_header(Bytes bytes) {
  if (bytes.size() < 32) return damaged_error(ImageFormat::sun, "its header is cut off");
  const std::uint8_t* data = raw(bytes);
  const std::int64_t width = big_endian(data + 4, 4), height = big_endian(data + 8, 4);
  const std::int64_t depth = big_endian(data + 12, 4);
  constexpr std::int64_t most = INT32_MAX;
  if (depth >= 1 && depth <= 32 && width <= most / depth &&
      (width == 0 || height <= most / (width * depth))) {
    return {};
  }
  return image_error(ImageFormat::sun,
                     "it claims " + std::to_string(width) + " x " + std::to_string(height) +
                         " pixels of " + std::to_string(depth) + " bits, more than can be counted",
                     "Write it again as PNG");
}

}  // namespace

Status read_libav_header(Bytes bytes, Header& header) {
  if (header.format == ImageFormat::psd) return read_psd_header(bytes, header);
  if (header.format == ImageFormat::sun) {
    if (Status status = check_sun_header(bytes); !status.ok()) return status;
  }
  FrameHandle frame;
  Asked asked;
  const ReadRequest any_size{.limits = {.image_pixels = INT32_MAX}};
  const int code = decode(bytes, header.format, any_size, &asked, frame);
  if (asked.width == 0) {
    return damaged_error(header.format, code < 0 ? message_of(code) : "it has no picture in it");
  }
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(asked.format);
  if (format == nullptr) return damaged_error(header.format, "its pixel format is unknown");
  header.width = asked.width;
  header.height = asked.height;
  header.bits = format->comp[0].depth;
  header.channels = shown_channels(*format);
  // The fourth byte of these is padding, though libav calls it alpha.
  const bool is_padded =
      header.format == ImageFormat::bmp && bytes.size() > 34 &&
      std::all_of(raw(bytes) + 30, raw(bytes) + 34, [](int b) { return b == 0; });
  if (is_padded && header.channels == 4 && header.bits == 8 && asked.format != AV_PIX_FMT_PAL8) {
    header.channels = 3;
  }
  if (header.format == ImageFormat::tiff) header.orientation = tiff_orientation(bytes);
  return {};
}

Status read_libav(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                  Damage& damage) {
  const TiffFacts tiff = header.format == ImageFormat::tiff ? tiff_facts(bytes) : TiffFacts{};
  if (const char* why = misread_by_libav(bytes, header.format, tiff); why != nullptr) {
    return image_error(header.format, std::string(why) + " is not supported",
                       "Write it again in another way, or as PNG");
  }
  FrameHandle frame;
  const int code = decode(bytes, header.format, request, nullptr, frame);
  if (code < 0) return damaged_error(header.format, message_of(code));
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame->format));
  if (format == nullptr || frame->width != header.width || frame->height != header.height ||
      !can_become(*format, header.channels)) {
    return damaged_error(header.format, "two headers contradict each other");
  }
  if (frame->decode_error_flags != 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0 ||
      (header.format == ImageFormat::tiff && !tiff_is_whole(bytes))) {
    damage = "parts of it are missing";
    if (!request.tolerant) return damaged_error(header.format, damage);
  }
  const std::size_t stride = static_cast<std::size_t>(header.width * header.channels) + row_padding;
  std::uint8_t* pixels = Scratch::ensure(Scratch::of_this_thread().raster,
                                         stride * static_cast<std::size_t>(header.height));
  if (frame->format == AV_PIX_FMT_PAL8) {
    read_palette(*frame, pixels, stride);
  } else if (is_rgb_or_grey(*format)) {
    read_components(*frame, *format, header.channels, pixels, stride);
  } else {
    Status status = scale_colours(*frame, header.format, tiff.full_range, pixels, stride);
    if (!status.ok()) return status;
  }
  if (tiff.premultiplied && header.channels == 4) unmultiply(pixels, stride, header);
  send_raster(pixels, stride, header.channels, request.region, sink);
  return {};
}

}  // namespace millrace::detail
