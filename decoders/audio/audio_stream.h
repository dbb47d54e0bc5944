// Private: decoded samples of one audio stream, from any sample on.
//
// Note [Sample accuracy]. Sample 0 is the first one that FFmpeg gives after it has taken away the
// encoder's delay. After a seek we know where we are by the time of the packet, which is only good
// if the container counts time in samples or finer; else we decode from the start. Codecs that
// overlap frames or predict from earlier ones are given some sound before the window to warm up.
#pragma once

#include <millrace/decoders/container/media_input.h>

#include <cstdint>
#include <vector>

namespace millrace::detail {

class AudioStream {
 public:
  Status open(MediaInput& input);
  void close();
  int sample_rate_hz() const { return codec_->sample_rate; }
  int channels() const { return codec_->ch_layout.nb_channels; }
  const AVCodecContext* codec() const { return codec_.get(); }

  // The length of the sound per channel if the container tells it; -1 otherwise.
  std::int64_t length() const { return length_; }
  // True where the container's duration is not that of all its sound.
  bool is_chained() const { return is_chained_; }

  // Makes next() begin with `sample`, or with the first after it if there is none.
  Status go_to(std::int64_t sample);
  // 1: `frame` has samples from position() on; 0: the end; negative: failed. Cut to what was asked.
  int next(AVFrame* frame);

 private:
  Status seek(std::int64_t sample);
  Status start_again();
  int receive(AVFrame* frame);
  bool place(const AVFrame* frame);
  std::int64_t warm_up_samples() const;

  MediaInput* input_ = nullptr;
  CodecHandle codec_;
  PacketHandle packet_;
  std::int64_t length_ = -1;
  std::int64_t wanted_ = 0;        // the first sample that next() may give
  std::int64_t position_ = 0;      // of the next sample that the decoder gives
  std::int64_t origin_ticks_ = 0;  // time of sample 0
  std::int64_t retry_back_ = 0;    // how much further back the next attempt goes
  bool is_chained_ = false;
  bool can_seek_ = false, placed_ = true, from_start_ = true, moved_ = false;
};

// Drops samples at the front of a frame.
void drop_front(AVFrame* frame, int samples);

}  // namespace millrace::detail
