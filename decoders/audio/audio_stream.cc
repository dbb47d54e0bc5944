#include "audio_stream.h"

#include "mp4_length.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::detail {

void drop_front(AVFrame* frame, int samples) {
  const auto format = static_cast<AVSampleFormat>(frame->format);
  const int channels = frame->ch_layout.nb_channels;
  const bool planar = av_sample_fmt_is_planar(format) != 0;
  const int bytes = av_get_bytes_per_sample(format) * samples * (planar ? 1 : channels);
  for (int c = 0; c < (planar ? channels : 1); ++c) {
    frame->extended_data[c] += bytes;
    if (c < AV_NUM_DATA_POINTERS) frame->data[c] = frame->extended_data[c];
  }
  frame->nb_samples -= samples;
}

namespace {

// The serial number of the Ogg stream that the last page in `bytes` belongs to.
std::optional<std::uint32_t> serial_of_last_page(const MediaInput& input, std::int64_t offset,
                                                 std::size_t most) {
  std::vector<std::uint8_t> bytes(most);
  bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, input.read_at(offset, bytes))));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::size_t serial = 14, header = 27;
  if (text.size() < header) return std::nullopt;
  const std::size_t at = text.rfind("OggS", text.size() - header);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | bytes[at + serial + i];
  return number;
}

// In a chained Ogg file streams follow one another; its duration is that of the last stream only.
bool has_followers(const MediaInput& input) {
  constexpr std::int64_t longest_page = 65'307;
  return serial_of_last_page(input, 0, 27) !=
         serial_of_last_page(input, std::max<std::int64_t>(0, input.size() - longest_page),
                             longest_page);
}

}  // namespace

void AudioStream::close() {
  codec_.reset();
  length_ = -1;
  is_chained_ = false;
  can_seek_ = false;
}

Status AudioStream::open(MediaInput& input) {
  close();
  input_ = &input;
  const AVStream* stream = input.stream();
  const AVCodecParameters* parameters = stream->codecpar;
  const DecodeLimits& limits = input.limits();
  if (parameters->ch_layout.nb_channels > limits.channels) {
    return input.beyond_limit("the number of channels", parameters->ch_layout.nb_channels,
                              limits.channels, "channels");
  }
  if (parameters->sample_rate > limits.sample_rate_hz) {
    return input.beyond_limit("the sample rate in Hz", parameters->sample_rate,
                              limits.sample_rate_hz, "sample_rate_hz");
  }
  const AVCodec* decoder = avcodec_find_decoder(parameters->codec_id);
  if (decoder == nullptr) {
    return input.error(std::string("no decoder for ") + avcodec_get_name(parameters->codec_id));
  }
  codec_.reset(avcodec_alloc_context3(decoder));
  if (packet_ == nullptr) packet_.reset(av_packet_alloc());
  if (codec_ == nullptr || packet_ == nullptr) return input.error("out of memory");
  int code = avcodec_parameters_to_context(codec_.get(), parameters);
  codec_->pkt_timebase = stream->time_base;
  codec_->thread_count = 1;
  origin_ticks_ = stream->start_time != AV_NOPTS_VALUE ? stream->start_time : 0;
  const std::string_view container = input.format()->iformat->name;
  const bool is_ogg = container == "ogg" && input.format()->nb_streams == 1;
  is_chained_ = is_ogg && has_followers(input);
  // Note [Where Vorbis ends]. The last page of an Ogg file states the number of samples. FFmpeg
  // removes the surplus from the last packet alone, which is wrong if the surplus is longer than
  // that packet. So we let FFmpeg return all samples and cut them ourselves.
  const bool cut_vorbis = is_ogg && !is_chained_ && parameters->codec_id == AV_CODEC_ID_VORBIS &&
                          origin_ticks_ == 0 && stream->duration > 0;
  if (cut_vorbis) codec_->flags2 |= AV_CODEC_FLAG2_SKIP_MANUAL;
  if (code >= 0) code = avcodec_open2(codec_.get(), decoder, nullptr);
  if (code < 0) return input.error(std::string("cannot start decoder ") + decoder->name, code);
  if (codec_->sample_rate <= 0 || codec_->ch_layout.nb_channels <= 0) {
    return input.error("the sample rate or the number of channels is missing");
  }
  const AVRational sample{1, codec_->sample_rate};
  for (const char* name : {"wav", "flac", "mp3", "ogg", "mp4", "aiff"}) {
    can_seek_ = can_seek_ || container.find(name) != std::string_view::npos;
  }
  can_seek_ = can_seek_ && av_cmp_q(stream->time_base, sample) <= 0;
  // FLAC in Ogg has timestamps for pages only.
  if (container == "ogg" && parameters->codec_id == AV_CODEC_ID_FLAC) can_seek_ = false;
  if (is_chained_) can_seek_ = false;  // FFmpeg cannot seek back into an earlier stream
  if (cut_vorbis) {
    length_ = av_rescale_q(stream->duration, stream->time_base, sample);
  } else if (container.find("mp4") != std::string_view::npos) {
    // FFmpeg itself drops only whole frames at the end.
    std::int64_t ticks =
        mp4_track_length(input, static_cast<std::uint32_t>(stream->id)).value_or(stream->duration);
    if (ticks > 0) length_ = av_rescale_q(ticks, stream->time_base, sample);
  }
  wanted_ = position_ = 0;
  placed_ = from_start_ = true;
  moved_ = false;
  return {};
}

std::int64_t AudioStream::warm_up_samples() const {
  switch (codec_->codec_id) {
    case AV_CODEC_ID_MP3:
      return std::int64_t{1152} * 12;  // the bit reservoir, and two frames of overlap
    case AV_CODEC_ID_AAC:
      return std::int64_t{2048} * 4;
    case AV_CODEC_ID_OPUS:
      return codec_->sample_rate;  // its energy is predicted from frame to frame
    case AV_CODEC_ID_VORBIS:
      return std::int64_t{8192} * 2;
    default:
      return codec_->frame_size > 0 ? std::int64_t{codec_->frame_size} * 2 : 0;
  }
}

Status AudioStream::go_to(std::int64_t sample) {
  wanted_ = sample;
  retry_back_ = 0;
  if (from_start_ && !moved_ && sample < codec_->sample_rate / 4) return {};
  return seek(sample - warm_up_samples());
}

Status AudioStream::start_again() {
  const std::int64_t wanted = wanted_;
  if (Status status = input_->reopen(); !status.ok()) return status;
  if (Status status = open(*input_); !status.ok()) return status;
  wanted_ = wanted;
  return {};
}

Status AudioStream::seek(std::int64_t sample) {
  const bool to_start = sample <= 0;
  if ((to_start || !can_seek_) && from_start_ && !moved_) return {};
  if (!can_seek_) return start_again();
  const AVStream* stream = input_->stream();
  const std::int64_t ticks = av_rescale_q(sample, {1, codec_->sample_rate}, stream->time_base);
  // Samples before the time of sample 0 belong to the encoder's delay.
  const int code =
      av_seek_frame(input_->format(), stream->index,
                    to_start ? std::min<std::int64_t>(origin_ticks_, 0) : origin_ticks_ + ticks,
                    AVSEEK_FLAG_BACKWARD);
  if (code < 0) return start_again();
  avcodec_flush_buffers(codec_.get());
  from_start_ = to_start;
  placed_ = moved_ = false;
  position_ = 0;
  return {};
}

int AudioStream::receive(AVFrame* frame) {
  for (;;) {
    const int code = avcodec_receive_frame(codec_.get(), frame);
    if (code == 0) return 1;
    if (code == AVERROR_EOF) return 0;
    if (input_->expired()) return AVERROR_EXIT;
    if (code != AVERROR(EAGAIN)) continue;
    moved_ = true;
    const int read = av_read_frame(input_->format(), packet_.get());
    if (read == AVERROR(EAGAIN)) continue;
    if (read == AVERROR_EXIT) return read;
    if (read < 0) {
      avcodec_send_packet(codec_.get(), nullptr);
      continue;
    }
    // A broken packet is skipped, as the ffmpeg program does.
    if (packet_->stream_index == input_->stream()->index) {
      avcodec_send_packet(codec_.get(), packet_.get());
    }
    av_packet_unref(packet_.get());
  }
}

// Finds the position after a seek; returns false if it is later than the wanted sample.
bool AudioStream::place(const AVFrame* frame) {
  if (placed_) return true;
  placed_ = true;
  if (frame->pts == AV_NOPTS_VALUE) return from_start_;
  position_ = av_rescale_q(frame->pts - origin_ticks_, input_->stream()->time_base,
                           {1, codec_->sample_rate});
  return from_start_ || position_ <= wanted_;
}

int AudioStream::next(AVFrame* frame) {
  for (;;) {
    const int code = receive(frame);
    if (code <= 0) return code;
    const bool changed = frame->sample_rate != codec_->sample_rate;
    if (frame->nb_samples <= 0 || changed) continue;
    if (!place(frame)) {
      retry_back_ = 2 * retry_back_ + codec_->sample_rate;
      if (!seek(wanted_ - warm_up_samples() - retry_back_).ok()) return AVERROR_INVALIDDATA;
      continue;
    }
    const std::int64_t start = position_;
    position_ += frame->nb_samples;
    if (position_ <= wanted_) continue;
    if (length_ >= 0 && start >= length_) return 0;
    if (length_ >= 0 && position_ > length_) {
      frame->nb_samples = static_cast<int>(length_ - start);
    }
    if (start < wanted_) {
      if (wanted_ - start >= frame->nb_samples) continue;
      drop_front(frame, static_cast<int>(wanted_ - start));
    }
    return 1;
  }
}

}  // namespace millrace::detail
