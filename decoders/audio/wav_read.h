// Private: reads uncompressed WAV without FFmpeg, which would first search the samples for other
// codecs. Unusual files are left to FFmpeg.
#pragma once

#include <millrace/decoders/container/media_input.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::detail {

class WavSamples {
 public:
  // Returns nothing if it is not a plain WAV file.
  static std::optional<WavSamples> find(MediaInput& input);

  int sample_rate_hz() const { return sample_rate_hz_; }
  int channels() const { return channels_; }
  std::int64_t length() const { return length_; }
  const char* codec() const { return codec_; }

  void go_to(std::int64_t sample) { next_ = sample; }
  // As AudioStream::next(); the frame borrows the samples until the next call.
  int next(MediaInput& input, AVFrame* frame);

 private:
  bool parse_format(const std::uint8_t* chunk, std::size_t size);

  int sample_rate_hz_ = 0, channels_ = 0, bytes_ = 0;
  AVSampleFormat format_ = AV_SAMPLE_FMT_NONE;
  const char* codec_ = "";
  std::int64_t data_offset_ = 0, length_ = 0, next_ = 0;
  std::vector<std::uint8_t> read_;
  std::vector<std::int32_t> widened_;  // 24-bit samples
};

}  // namespace millrace::detail
