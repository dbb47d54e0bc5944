#include "wav_read.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace millrace::detail {
namespace {

std::uint32_t u16(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(at[0] | at[1] << 8);
}

std::uint32_t u32(const std::uint8_t* at) {
  return u16(at) | u16(at + 2) << 16;
}

bool has_tag(const std::uint8_t* at, const char* tag) {
  return std::memcmp(at, tag, 4) == 0;
}

}  // namespace

bool WavSamples::parse_format(const std::uint8_t* chunk, std::size_t size) {
  if (size < 16) return false;
  std::uint32_t kind = u16(chunk);
  const std::uint32_t bits = u16(chunk + 14), block = u16(chunk + 12);
  channels_ = static_cast<int>(u16(chunk + 2));
  sample_rate_hz_ = static_cast<int>(std::min<std::uint32_t>(u32(chunk + 4), 1U << 30));
  if (kind == 0xFFFE && size >= 40) {
    if (u16(chunk + 18) != bits) return false;  // padded samples
    kind = u16(chunk + 24);
  }
  bytes_ = static_cast<int>(bits / 8);
  if (channels_ < 1 || sample_rate_hz_ < 1 || bits % 8 != 0) return false;
  if (block != static_cast<std::uint32_t>(channels_ * bytes_)) return false;
  struct Known {
    std::uint32_t kind, bits;
    AVSampleFormat format;
    const char* codec;
  };
  static constexpr Known known[] = {
      {1, 8, AV_SAMPLE_FMT_U8, "pcm_u8"},      {1, 16, AV_SAMPLE_FMT_S16, "pcm_s16le"},
      {1, 24, AV_SAMPLE_FMT_S32, "pcm_s24le"}, {1, 32, AV_SAMPLE_FMT_S32, "pcm_s32le"},
      {3, 32, AV_SAMPLE_FMT_FLT, "pcm_f32le"}, {3, 64, AV_SAMPLE_FMT_DBL, "pcm_f64le"},
  };
  for (const Known& one : known) {
    if (one.kind != kind || one.bits != bits) continue;
    format_ = one.format;
    codec_ = one.codec;
    return true;
  }
  return false;
}

std::optional<WavSamples> WavSamples::find(MediaInput& input) {
  std::uint8_t start[12];
  if (input.read_at(0, start) != 12 || !has_tag(start, "RIFF") || !has_tag(start + 8, "WAVE")) {
    return {};
  }
  WavSamples wav;
  bool has_format = false;
  std::int64_t at = 12;
  // A file with more chunks than this before its samples is not a plain WAV file.
  for (int chunk = 0; chunk < 64; ++chunk) {
    std::uint8_t head[8], format[40] = {};
    if (input.read_at(at, head) != 8) return {};
    const std::int64_t size = u32(head + 4);
    at += 8;
    if (has_tag(head, "fmt ")) {
      const auto read = input.read_at(at, std::span(format).first(static_cast<std::size_t>(
                                              std::min<std::int64_t>(size, sizeof format))));
      has_format =
          wav.parse_format(format, static_cast<std::size_t>(std::max<std::int64_t>(read, 0)));
      if (!has_format) return {};
    } else if (has_tag(head, "data")) {
      if (!has_format) return {};
      wav.data_offset_ = at;
      // An interrupted writer leaves a length of 0, of 2^32 - 1, or one beyond the end of the file.
      std::int64_t bytes = std::min(size, input.size() - at);
      if (size == 0) bytes = input.size() - at;
      wav.length_ = std::max<std::int64_t>(bytes, 0) / (std::int64_t{wav.bytes_} * wav.channels_);
      return wav;
    }
    at += size + size % 2;
  }
  return {};
}

int WavSamples::next(MediaInput& input, AVFrame* frame) {
  if (input.expired()) return AVERROR_EXIT;
  const std::int64_t block = std::int64_t{bytes_} * channels_;
  const std::int64_t count = std::min<std::int64_t>(length_ - next_, 16'384);
  if (count <= 0) return 0;
  read_.resize(static_cast<std::size_t>(count * block));
  const std::int64_t got = input.read_at(data_offset_ + next_ * block, read_);
  if (got < block) return got < 0 ? static_cast<int>(got) : 0;
  const std::int64_t samples = got / block;
  next_ += samples;
  frame->data[0] = read_.data();
  if (bytes_ == 3) {
    widened_.resize(static_cast<std::size_t>(samples * channels_));
    for (std::size_t i = 0; i < widened_.size(); ++i) {
      const std::uint8_t* from = read_.data() + 3 * i;
      widened_[i] =
          static_cast<std::int32_t>(std::uint32_t{from[0]} << 8 | std::uint32_t{from[1]} << 16 |
                                    std::uint32_t{from[2]} << 24);
    }
    frame->data[0] = reinterpret_cast<std::uint8_t*>(widened_.data());
  }
  frame->extended_data = frame->data;
  frame->nb_samples = static_cast<int>(samples);
  frame->format = format_;
  frame->sample_rate = sample_rate_hz_;
  if (frame->ch_layout.nb_channels != channels_) {
    av_channel_layout_uninit(&frame->ch_layout);
    av_channel_layout_default(&frame->ch_layout, channels_);
  }
  return 1;
}

}  // namespace millrace::detail
