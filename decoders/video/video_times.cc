// Reads the presentation times of the frames of a stream from its packets.
#include "video_stream.h"

#include <algorithm>
#include <string>

namespace millrace::detail {

// Not shown: frames that an edit list removes, and VP8's hidden reference frames, which have their
// own packets.
bool VideoStream::is_shown(const AVPacket& packet) const {
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;
  return codec_->codec_id != AV_CODEC_ID_VP8 || (packet.data[0] & 0x10) != 0;
}

Status VideoStream::peek_times(std::size_t count, std::vector<std::int64_t>& pts_ticks) {
  pts_ticks.clear();
  if (!times_are_exact_) return {};
  // The position of a packet in presentation order is final once the decoding time has passed it.
  std::vector<std::int64_t> seen;
  for (std::size_t i = 0;; ++i) {
    if (i == queue_.size()) {
      const int code = read_packet();
      if (code == AVERROR_EXIT) return input_->error("cannot read", code);
      if (code < 0) break;
    }
    if (!times_are_exact_) return {};
    if (is_shown(*queue_[i])) {
      seen.insert(std::upper_bound(seen.begin(), seen.end(), queue_[i]->pts), queue_[i]->pts);
    }
    if (seen.size() >= count && seen[count - 1] <= queue_[i]->dts) break;
  }
  seen.resize(std::min(seen.size(), count));
  pts_ticks = std::move(seen);
  return {};
}

Status VideoStream::check_scan(std::size_t frames, double seconds) const {
  const DecodeLimits& limits = input_->limits();
  if (seconds > limits.duration_seconds) {
    return input_->beyond_limit("the duration in seconds", seconds, limits.duration_seconds,
                                "duration_seconds");
  }
  // A thousand frames per second for the longest clip; a file with more is hostile.
  const double most = 1000 * limits.duration_seconds;
  if (static_cast<double>(frames) > most) {
    return input_->beyond_limit("the number of frames", static_cast<double>(frames), most,
                                "duration_seconds");
  }
  return {};
}

Status VideoStream::scan_times(std::vector<std::int64_t>& pts_ticks, std::int64_t& end_ticks) {
  pts_ticks.clear();
  end_ticks = 0;
  if (Status status = go_to_start(); !status.ok()) return status;
  const double tick_seconds = av_q2d(input_->stream()->time_base);
  for (;;) {
    if (queue_.empty()) {
      const int code = read_packet();
      if (code == AVERROR_EXIT) return input_->error("cannot read", code);
      if (code < 0) break;
    }
    PacketHandle packet = std::move(queue_.front());
    queue_.pop_front();
    moved_ = true;
    if (packet->pts == AV_NOPTS_VALUE) return scan_by_decoding(pts_ticks, end_ticks);
    if (is_shown(*packet)) {
      pts_ticks.push_back(packet->pts);
      end_ticks = std::max(end_ticks, packet->pts + packet->duration);
      const double seconds = static_cast<double>(packet->pts - pts_ticks.front()) * tick_seconds;
      if (Status status = check_scan(pts_ticks.size(), seconds); !status.ok()) return status;
    }
    av_packet_unref(packet.get());
    spare_.push_back(std::move(packet));
  }
  spent_ = true;
  std::ranges::sort(pts_ticks);
  return {};
}

Status VideoStream::scan_by_decoding(std::vector<std::int64_t>& pts_ticks,
                                     std::int64_t& end_ticks) {
  pts_ticks.clear();
  end_ticks = 0;
  if (Status status = go_to_start(); !status.ok()) return status;
  stop_after(never);
  want_only(nullptr);
  FrameHandle frame(av_frame_alloc());
  const double tick_seconds = av_q2d(input_->stream()->time_base);
  int code = 0;
  while ((code = next(frame.get())) == 1) {
    const std::int64_t ticks = shown_at(frame.get());
    pts_ticks.push_back(ticks);
    end_ticks = std::max(end_ticks, ticks + frame_duration_ticks(frame.get()));
    const double seconds = static_cast<double>(ticks - pts_ticks.front()) * tick_seconds;
    if (Status status = check_scan(pts_ticks.size(), seconds); !status.ok()) return status;
  }
  if (code < 0) return input_->error("cannot decode", code);
  return {};
}

}  // namespace millrace::detail
