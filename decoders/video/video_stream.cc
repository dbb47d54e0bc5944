#include "video_stream.h"

#include <algorithm>
#include <string>

namespace millrace::detail {
namespace {

constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min();

std::int64_t packet_time(const AVPacket& packet) {
  return packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
}

}  // namespace

Status VideoStream::open(MediaInput& input, int threads) {
  close();
  input_ = &input;
  times_are_exact_ = input.has_exact_times();
  const AVCodecParameters* parameters = input.stream()->codecpar;
  const AVCodec* decoder = avcodec_find_decoder(parameters->codec_id);
  if (decoder == nullptr) {
    return input.error(std::string("no decoder for ") + avcodec_get_name(parameters->codec_id));
  }
  const std::int64_t pixels = std::int64_t{parameters->width} * parameters->height;
  if (pixels > input.limits().frame_pixels) {
    return input.beyond_limit("the number of pixels of a frame", static_cast<double>(pixels),
                              static_cast<double>(input.limits().frame_pixels), "frame_pixels");
  }
  codec_.reset(avcodec_alloc_context3(decoder));
  if (codec_ == nullptr) return input.error("out of memory");
  int code = avcodec_parameters_to_context(codec_.get(), parameters);
  codec_->pkt_timebase = input.stream()->time_base;
  codec_->thread_count = threads;
  codec_->max_pixels = input.limits().frame_pixels;
  if (code >= 0) code = avcodec_open2(codec_.get(), decoder, nullptr);
  if (code < 0) return input.error(std::string("cannot start decoder ") + decoder->name, code);
  forget_position();
  from_start_ = true;
  trusted_from_ticks_ = before_all;
  return {};
}

void VideoStream::close() {
  codec_.reset();
  queue_.clear();
  wanted_ = nullptr;
  stop_after_ticks_ = never;
  reorder_ticks_ = 0;
  reset_counts();
}

void VideoStream::forget_position() {
  while (!queue_.empty()) {
    av_packet_unref(queue_.front().get());
    spare_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  sent_dts_ticks_ = shown_ticks_ = before_all;
  read_all_ = spent_ = stopped_early_ = moved_ = false;
}

int VideoStream::read_packet() {
  if (read_all_) return AVERROR_EOF;
  PacketHandle packet;
  if (spare_.empty()) {
    packet.reset(av_packet_alloc());
    if (packet == nullptr) return AVERROR(ENOMEM);
  } else {
    packet = std::move(spare_.back());
    spare_.pop_back();
  }
  for (;;) {
    if (input_->expired()) return AVERROR_EXIT;
    const int code = av_read_frame(input_->format(), packet.get());
    if (code == AVERROR(EAGAIN)) continue;
    if (code < 0) {
      read_all_ = true;
      if (code != AVERROR_EOF) ++damaged_;  // the file is shorter than its index says
      spare_.push_back(std::move(packet));
      return code;
    }
    if (packet->stream_index == input_->stream()->index && packet->size > 0) break;
    av_packet_unref(packet.get());
  }
  if (packet->pts == AV_NOPTS_VALUE || packet->dts == AV_NOPTS_VALUE || packet->pts < packet->dts) {
    times_are_exact_ = false;
  } else {
    reorder_ticks_ = std::max(reorder_ticks_, packet->pts - packet->dts);
  }
  queue_.push_back(std::move(packet));
  return 0;
}

// See Note [No packet too many].
bool VideoStream::has_more_to_send() {
  if (queue_.empty()) read_packet();
  if (queue_.empty()) return false;
  if (stop_after_ticks_ == never || queue_.front()->pts <= stop_after_ticks_) return true;
  for (std::size_t i = 0; times_are_exact_; ++i) {
    if (i == queue_.size() && read_packet() < 0) break;
    if (queue_[i]->pts <= stop_after_ticks_) return true;
    if (queue_[i]->dts > stop_after_ticks_) break;
  }
  if (!times_are_exact_) return true;
  stopped_early_ = true;
  return false;
}

void VideoStream::send_packet() {
  PacketHandle packet = std::move(queue_.front());
  queue_.pop_front();
  moved_ = true;
  if (packet->dts != AV_NOPTS_VALUE) sent_dts_ticks_ = std::max(sent_dts_ticks_, packet->dts);
  // Only in H.264 does "not a reference" guarantee that no frame refers to it.
  const bool skip = wanted_ != nullptr && times_are_exact_ &&
                    codec_->codec_id == AV_CODEC_ID_H264 && codec_->thread_count == 1 &&
                    !std::ranges::binary_search(*wanted_, packet->pts);
  codec_->skip_frame = skip ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
  const bool cut = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0;
  if (avcodec_send_packet(codec_.get(), packet.get()) < 0 || cut) ++damaged_;
  av_packet_unref(packet.get());
  spare_.push_back(std::move(packet));
}

int VideoStream::next(AVFrame* frame) {
  for (;;) {
    const int code = avcodec_receive_frame(codec_.get(), frame);
    if (code == 0) {
      ++decoded_;
      if (frame->best_effort_timestamp == AV_NOPTS_VALUE) guess_time(frame);
      if (shown_at(frame) < trusted_from_ticks_) continue;
      if (!is_clean_start(frame)) {
        if (!go_to_start().ok()) return AVERROR_INVALIDDATA;
        continue;
      }
      shown_ticks_ = shown_at(frame);
      if (frame->decode_error_flags != 0) ++damaged_;  // errors in it were concealed
      return 1;
    }
    if (code == AVERROR_EOF) return 0;
    if (input_->expired()) return AVERROR_EXIT;
    if (code != AVERROR(EAGAIN)) {
      ++damaged_;
      continue;
    }
    if (has_more_to_send()) {
      send_packet();
    } else {
      if (input_->expired()) return AVERROR_EXIT;
      avcodec_send_packet(codec_.get(), nullptr);
      spent_ = true;
    }
  }
}

// Raw streams have no times: their frames follow each other at the rate of the stream.
void VideoStream::guess_time(AVFrame* frame) const {
  const AVStream* stream = input_->stream();
  std::int64_t step = frame_duration_ticks(frame);
  if (step <= 0 && stream->avg_frame_rate.num > 0) {
    step = av_rescale_q(1, av_inv_q(stream->avg_frame_rate), stream->time_base);
  }
  frame->best_effort_timestamp =
      shown_ticks_ == before_all ? 0 : shown_ticks_ + std::max<std::int64_t>(step, 1);
}

bool VideoStream::is_clean_start(const AVFrame* frame) const {
  return from_start_ || codec_->codec_id != AV_CODEC_ID_H264 ||
         shown_at(frame) != trusted_from_ticks_ || frame->pict_type == AV_PICTURE_TYPE_I;
}

Status VideoStream::go_to_start() {
  if (from_start_ && !spent_ && !moved_) return {};
  AVFormatContext* format = input_->format();
  const AVStream* stream = input_->stream();
  const std::int64_t start = stream->start_time != AV_NOPTS_VALUE ? stream->start_time : 0;
  int code = -1;
  if ((format->iformat->flags & AVFMT_TS_DISCONT) != 0) {
    code = avformat_seek_file(format, stream->index, before_all, 0, 0, AVSEEK_FLAG_BYTE);
  }
  if (code < 0) code = av_seek_frame(format, stream->index, start, AVSEEK_FLAG_BACKWARD);
  if (code < 0) code = avformat_seek_file(format, -1, before_all, 0, 0, AVSEEK_FLAG_BYTE);
  if (code < 0) return input_->error("cannot go back to the start", code);
  avcodec_flush_buffers(codec_.get());
  forget_position();
  from_start_ = true;
  codec_->flags &= ~AV_CODEC_FLAG_OUTPUT_CORRUPT;
  trusted_from_ticks_ = before_all;
  return {};
}

bool VideoStream::key_frame_lies_between(std::int64_t pts_ticks) const {
  if (!input_->tells_presentation_times()) return false;
  AVStream* stream = input_->stream();
  const int entry =
      av_index_search_timestamp(stream, pts_ticks - reorder_ticks_, AVSEEK_FLAG_BACKWARD);
  const AVIndexEntry* key = entry >= 0 ? avformat_index_get_entry(stream, entry) : nullptr;
  if (key == nullptr) return false;
  std::int64_t here = sent_dts_ticks_;
  if (!queue_.empty() && queue_.front()->dts != AV_NOPTS_VALUE) {
    here = std::max(here, queue_.front()->dts);
  }
  return key->timestamp > here;
}

Status VideoStream::reach(std::int64_t pts_ticks) {
  if (queue_.empty() && !moved_ && !spent_) read_packet();
  const bool is_ahead = !spent_ && (shown_ticks_ == before_all || shown_ticks_ < pts_ticks);
  if (!input_->tells_presentation_times()) return is_ahead ? Status() : go_to_start();
  const bool knows_index = avformat_index_get_entries_count(input_->stream()) > 1;
  const AVRational base = input_->stream()->time_base;
  // Without an index, a seek costs about as much as decoding for this long.
  const bool is_near = pts_ticks - std::max(shown_ticks_, std::int64_t{0}) <
                       av_rescale_q(AV_TIME_BASE, microseconds, base);
  if (is_ahead && trusted_from_ticks_ <= pts_ticks) {
    if (knows_index ? !key_frame_lies_between(pts_ticks) : is_near) return {};
  }
  return seek_to_key_before(pts_ticks, pts_ticks);
}

Status VideoStream::reach_from_earlier(std::int64_t pts_ticks) {
  const std::int64_t key = trusted_from_ticks_;
  return seek_to_key_before(pts_ticks, std::min(key, pts_ticks) - 1);
}

// See Note [Seeking].
Status VideoStream::seek_to_key_before(std::int64_t target_ticks, std::int64_t from_ticks) {
  AVStream* stream = input_->stream();
  std::int64_t step = av_rescale_q(AV_TIME_BASE / 2, microseconds, stream->time_base) + 1;
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (av_seek_frame(input_->format(), stream->index, from_ticks, AVSEEK_FLAG_BACKWARD) < 0) {
      break;
    }
    avcodec_flush_buffers(codec_.get());
    forget_position();
    from_start_ = false;
    codec_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    while (read_packet() == 0 && (queue_.back()->flags & AV_PKT_FLAG_KEY) == 0) {
      av_packet_unref(queue_.back().get());
      queue_.pop_back();
    }
    if (input_->expired()) return input_->error("cannot seek", AVERROR_EXIT);
    if (!queue_.empty() && packet_time(*queue_.front()) != AV_NOPTS_VALUE) {
      trusted_from_ticks_ = packet_time(*queue_.front());
      if (trusted_from_ticks_ <= target_ticks) return {};
      from_ticks = std::min(from_ticks, trusted_from_ticks_);
    }
    from_ticks -= step;
    step *= 2;
  }
  moved_ = true;
  return go_to_start();
}

}  // namespace millrace::detail
