// Private: the decoded samples of one audio stream, from any position.
//
// Note [Sample accuracy]. Sample 0 is the first sample that FFmpeg returns after it has removed the
// encoder's delay. After a seek, the packet's timestamp gives the position. It is exact only if the
// container counts time in samples or finer units; otherwise we decode from the start. Codecs that
// overlap frames or predict from earlier frames are decoded from some samples before the window.
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

  // Number of samples per channel if the container states it; -1 otherwise.
  std::int64_t length() const { return length_; }
  // True if the container's duration does not cover all its audio (chained Ogg).
  bool is_chained() const { return is_chained_; }

  // Makes next() start at `sample`, or at the first sample after it if the file has a gap there.
  Status go_to(std::int64_t sample);
  // Returns 1 if `frame` has samples that start at position(), 0 at the end, an AVERROR on failure.
  // Samples before the requested one are cut off.
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
  std::int64_t wanted_ = 0;        // the first sample that next() may return
  std::int64_t position_ = 0;      // of the next sample that the decoder returns
  std::int64_t origin_ticks_ = 0;  // time of sample 0
  std::int64_t retry_back_ = 0;    // distance by which the next seek goes further back
  bool is_chained_ = false;
  bool can_seek_ = false, placed_ = true, from_start_ = true, moved_ = false;
};

// Drops samples at the front of a frame.
void drop_front(AVFrame* frame, int samples);

}  // namespace millrace::detail
