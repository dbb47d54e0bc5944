// Private: the frames of one video stream in the order they are shown, from any place in it.
//
// Note [No packet too many]. A decoder holds reordered frames back until later packets push them
// out. Where the container tells decoding times as well, we know without decoding when the last
// wanted frame has gone in (no later packet is shown before it), and drain the decoder there.
//
// Note [Seeking]. A seek is only believed when the packet it lands on is a key frame shown no later
// than the target; otherwise we go further back. Frames shown before that key frame refer to what
// we have not decoded, and are dropped. FFmpeg's H.264 decoder has its own idea of which frames
// after such a place can be shown, and loses good ones when it is drained; so it is told to give
// all, and a place where the picture only builds up (periodic intra refresh has no true key frames)
// is known by its first frame, which is not intra coded: then we decode from the start.
#pragma once

#include <millrace/decoders/container/media_input.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace millrace::detail {

class VideoStream {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  Status open(MediaInput& input, int threads);
  void close();
  const AVCodecContext* codec() const { return codec_.get(); }

  // 1: `frame` is the next one; 0: the end, or nothing up to stop_after(); negative: failed.
  int next(AVFrame* frame);
  Status go_to_start();
  // Makes next() give the frame that is shown at `pts_ticks`, after some earlier ones. Goes on from
  // the present place if that is no longer.
  Status reach(std::int64_t pts_ticks);
  // For when next() gave a later frame after reach().
  Status reach_from_earlier(std::int64_t pts_ticks);
  // False if frames before the first that next() gave may exist.
  bool began_at_start() const { return from_start_; }
  // True if seeking to this later frame needs less decoding than going on.
  bool key_frame_lies_between(std::int64_t pts_ticks) const;

  // No frame after this one is wanted.
  void stop_after(std::int64_t pts_ticks) { stop_after_ticks_ = pts_ticks; }
  // True if next() ended because of it while the file goes on.
  bool stopped_early() const { return stopped_early_; }
  // Frames that are not in this sorted list and that no other needs are not decoded; null: all are.
  void want_only(const std::vector<std::int64_t>* pts_ticks) { wanted_ = pts_ticks; }

  // The times of the first `count` frames, in order, from the packets alone; fewer if the file is
  // shorter, none if the container does not tell. Must be at the start.
  Status peek_times(std::size_t count, std::vector<std::int64_t>& pts_ticks);
  // The times of all frames. Leaves the stream somewhere.
  Status scan_times(std::vector<std::int64_t>& pts_ticks, std::int64_t& end_ticks);

  std::int64_t damaged() const { return damaged_; }
  std::int64_t decoded() const { return decoded_; }
  void reset_counts() { damaged_ = decoded_ = 0; }

 private:
  int read_packet();
  bool has_more_to_send();
  void send_packet();
  Status seek_to_key_before(std::int64_t target_ticks, std::int64_t from_ticks);
  void forget_position();
  bool is_clean_start(const AVFrame* frame) const;
  void guess_time(AVFrame* frame) const;
  bool is_shown(const AVPacket& packet) const;
  Status scan_by_decoding(std::vector<std::int64_t>& pts_ticks, std::int64_t& end_ticks);
  Status check_scan(std::size_t frames, double seconds) const;

  MediaInput* input_ = nullptr;
  CodecHandle codec_;
  std::deque<PacketHandle> queue_;  // read, not yet sent
  std::vector<PacketHandle> spare_;
  const std::vector<std::int64_t>* wanted_ = nullptr;
  std::int64_t stop_after_ticks_ = never;
  std::int64_t trusted_from_ticks_ = 0;  // frames before this refer to what was not decoded
  std::int64_t sent_dts_ticks_ = 0;      // of the last packet that was sent
  std::int64_t shown_ticks_ = 0;         // of the last frame that came out
  std::int64_t reorder_ticks_ = 0;       // largest distance seen between decoding and showing
  std::int64_t damaged_ = 0, decoded_ = 0;
  bool read_all_ = false, stopped_early_ = false;
  bool spent_ = false;      // nothing more comes without a seek
  bool from_start_ = true;  // what was read since then is all there is before
  bool moved_ = false;      // a packet was taken since the last seek
  bool times_are_exact_ = false;
};

// When a frame is shown, by the best of what the file tells.
inline std::int64_t shown_at(const AVFrame* frame) {
  return frame->best_effort_timestamp != AV_NOPTS_VALUE ? frame->best_effort_timestamp : 0;
}

}  // namespace millrace::detail
