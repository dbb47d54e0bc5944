// Private: the frames of one video stream in presentation order, from any position.
//
// Note [No packet too many]. A decoder holds reordered frames back until it gets later packets. If
// the container has decoding times, we know without decoding when the decoder has the last wanted
// frame (no later packet is shown before it), and drain the decoder there.
//
// Note [Seeking]. A seek is accepted only if it lands on a key frame shown no later than the
// target; otherwise we seek further back. Frames shown before that key frame refer to frames that
// were not decoded, and are dropped. FFmpeg's H.264 decoder decides by itself which frames after a
// seek can be shown, and loses good frames when it is drained. So it is set to output all frames.
// With periodic intra refresh, which has no true key frames, the first frame after a seek is not
// intra coded; then we decode from the start.
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

  // Returns 1 if `frame` is the next one, 0 at the end or after stop_after(), an AVERROR on
  // failure.
  int next(AVFrame* frame);
  Status go_to_start();
  // Makes next() return the frame shown at `pts_ticks`, possibly after some earlier frames. Does
  // not seek if decoding from the current position takes no longer.
  Status reach(std::int64_t pts_ticks);
  // To be called if next() returned a later frame after reach().
  Status reach_from_earlier(std::int64_t pts_ticks);
  // False if there may be frames before the first one that next() returned.
  bool began_at_start() const { return from_start_; }
  // True if a seek to this later frame needs less decoding than continuing.
  bool key_frame_lies_between(std::int64_t pts_ticks) const;

  // Sets the last frame that is wanted.
  void stop_after(std::int64_t pts_ticks) { stop_after_ticks_ = pts_ticks; }
  // True if next() returned 0 because of stop_after() and not at the end of the file.
  bool stopped_early() const { return stopped_early_; }
  // Skips frames that are not in this sorted list and that no other frame refers to. Null: decodes
  // all frames.
  void want_only(const std::vector<std::int64_t>* pts_ticks) { wanted_ = pts_ticks; }

  // The times of the first `count` frames in order, from the packets alone; fewer if the file is
  // shorter, none if the container has no times. The stream must be at its start.
  Status peek_times(std::size_t count, std::vector<std::int64_t>& pts_ticks);
  // The times of all frames. The position of the stream is undefined afterwards.
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
  std::int64_t trusted_from_ticks_ = 0;  // frames before this may refer to undecoded frames
  std::int64_t sent_dts_ticks_ = 0;      // of the last packet sent to the decoder
  std::int64_t shown_ticks_ = 0;         // of the last frame returned by the decoder
  std::int64_t reorder_ticks_ = 0;  // largest difference seen of presentation and decoding time
  std::int64_t damaged_ = 0, decoded_ = 0;
  bool read_all_ = false, stopped_early_ = false;
  bool spent_ = false;      // the decoder is drained; only a seek gives more frames
  bool from_start_ = true;  // decoding began at the start of the file
  bool moved_ = false;      // a packet was read since the last seek
  bool times_are_exact_ = false;
};

// The presentation time of a frame, by FFmpeg's best effort.
inline std::int64_t shown_at(const AVFrame* frame) {
  return frame->best_effort_timestamp != AV_NOPTS_VALUE ? frame->best_effort_timestamp : 0;
}

}  // namespace millrace::detail
